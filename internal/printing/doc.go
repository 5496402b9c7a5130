// Package printing writes the output of a command-line program: results as text or as one
// JSON document, tables, ages and times, errors and warnings, and the progress of long
// commands.
//
// Control characters are escaped in all output, so that text from events, names and errors
// cannot control a terminal.
package printing
