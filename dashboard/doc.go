// Package dashboard shows a queue in a browser: what is counted per minute, the handlers, the
// events and why they do not run, what has failed, and the workers. Users with the right to do so can also change it there. It is an
// http.Handler, which has a page for logging in, or is mounted behind the login of an application.
//
// # Guarantees
//
// Everybody sees the canvases that they may read; events of other canvases are reported as not found.
// A change needs its verb, comes from a form of the dashboard's own pages, and writes its row of the
// audit log in its own transaction. A GET changes nothing.
//
// No page counts events in a
// table: charts come from the counts per minute, those of longer times from their sums, and lists are pages of bounded size. Statements
// of a request are cancelled after Config.Timeout. What is stored is hostile text: it is escaped,
// and characters that would hide or reorder other text are shown as escapes. Pages work without
// their script, and their Content-Security-Policy allows no other.
//
// # Failures
//
// A page whose reading failed says so with status 503; the error goes to the log, and not to the
// browser. A change whose result is not known says so.
package dashboard
