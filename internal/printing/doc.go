// Package printing writes what a command-line program says: results as text or as one
// JSON document, tables, ages and times, errors and warnings, and the progress of long
// commands.
//
// What an event, a name or an error holds reaches a terminal only in printable form:
// control characters are escaped in all output.
package printing
