// Package journal is the record that handlers of the chaos run write outside the
// database: a file for each process, to which a line is appended when a run
// starts, when it ends, and when the process found that it had stood still.
//
// # Guarantees
//
// A line is one write to a file opened with O_APPEND: it is there whole as soon
// as the method returns, whatever happens to the process afterwards. (A machine
// that loses its memory would lose lines; the chaos run kills processes only.)
//
// # Failures
//
// A line that cannot be written is an error of the method; the handler must not
// go on as if it were there. A line that cannot be read names its file and
// number.
package journal
