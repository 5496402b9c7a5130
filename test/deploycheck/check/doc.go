// Package check holds the files of a deployment on Google Cloud (deploy/, and the pages that lead through it) to what
// can be known of the cloud without one: the types of its APIs and of Kubernetes, into which every file is decoded
// strictly, and to the programs themselves, which are started with the environment that the files give them.
//
// Each check adds to a Report: what it has looked at, so that a check that finds nothing to look at is noticed, and
// what is wrong. A check reads from a directory, so that the tests can give it a copy that is broken.
package check
