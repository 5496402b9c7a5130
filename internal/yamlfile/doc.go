// Package yamlfile reads YAML files that people write. It reports every mistake with
// its line, and continues after it.
//
// # Guarantees
//
// A file is one document of UTF-8 without control characters, or it is refused.
// Keys are never overwritten: a duplicate key is a mistake. Nothing is expanded: an
// alias stays a node that [Resolve] follows, so a small file is never large in
// memory.
//
// # Failures
//
// No function returns an error. Each mistake is passed to a [Report], and the caller
// continues with the rest. [Mistakes] collects them within bounds.
package yamlfile
