// Package emission defines the request by which the faults program asks the program that
// embeds the library (package embed) to emit events: a list of them as JSON, with values as
// text, so that no byte of them changes on the way.
package emission
