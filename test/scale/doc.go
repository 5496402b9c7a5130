// Package scale fills a database with many events, canvases and handlers, and measures what each page of the
// dashboard, each read of the HTTP API, and a change of 100,000 events with each verb costs there:
//
//	make scale                # a million events; it takes some minutes
//	make scale EVENTS=100000
//
// A row of the table that it prints is a request: the number of its statements, how long they took together, and the size
// of the answer. A request whose statements take longer than 300 ms, and a page that has more than 200 kB, fail
// it. A change has a row as well; it fails if it takes more statements than its pieces need, or ten times as long as it
// should: a minute, and a second for a statement. Without -events, as in make test, it does the same with few events, and judges no times.
package scale
