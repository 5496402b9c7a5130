// Command up runs a local environment until Ctrl-C (make up): a Postgres database, a notifier, a worker, cron and
// the dashboard, as built programs, without Docker.
//
// The worker's handlers file may be edited meanwhile: a second later a worker with the new file is started,
// and then the one with the old file is stopped, whose runs may finish as they began. A file with mistakes is
// refused, with its lines, and the worker that runs stays.
//
// Nothing that it starts is left when it ends, however it ends, and its data is removed.
package main
