// Command withservices runs a command with a Postgres and a Pub/Sub emulator:
//
//	go run ./test/withservices [--] command arguments…
//
// What the environment does not name is found or started as package services
// says, and handed to the command in DATABASE_URL and PUBSUB_EMULATOR_HOST. One
// line on standard error says where each comes from. Without a Postgres nothing
// is run. Without an emulator the command is run all the same, and a line in
// capitals says that the tests which need it are going to be skipped.
//
// SIGINT and SIGTERM are passed on to the command. When the command ends, the
// services that were started are stopped and withservices exits with the
// command's status, or with 128 and the signal's number when a signal ended it.
// Status 125 says that withservices itself failed. (go run turns every status but
// 0 into 1; build the command where the difference matters.) The services also
// stop when withservices is killed.
package main
