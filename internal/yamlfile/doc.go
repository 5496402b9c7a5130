// Package yamlfile reads files that people write, in YAML, so that every mistake
// is reported with its line and reading goes on after it.
//
// # Guarantees
//
// A file is one document of UTF-8 without control characters, or it is refused.
// Keys are never overwritten: one that is there twice is a mistake. Nothing is
// expanded: an alias stays a node that [Resolve] follows, so a small file is
// never a large one in memory.
//
// # Failures
//
// Nothing here returns an error. What is wrong goes to a [Report], which collects
// it, and the caller goes on with what is left.
package yamlfile
