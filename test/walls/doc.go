// Package walls holds the layout of the module to what is written of it: the picture in
// docs/architecture.md is drawn from the imports, the linter refuses imports that run the
// wrong way, and no more than five files of a package use each other in a cycle. Its tests
// also hold exported names, log texts, help texts and pages to the words of docs/glossary.md;
// those of migrations do so for the names in the database.
package walls
