// Package command is shared by the programs below test: how they are ended by
// signals, read their options, report progress, undo what they have set up, and exit.
//
// # Failure handling
//
// What cannot be printed or removed is not worth an error: there is nowhere else to report it.
package command
