// Command embed is a program that embeds the library as README.md and docs/embedding.md
// show it: package service, with its defaults, and with no part but the worker.
//
// Its handlers post each event to FAULTS_TARGET, as cmd/worker would, so that one
// place sees all runs. POST /emit, on the address that it logs, emits the events of
// a JSON list and answers with their ids, and GET /readyz answers as in cmd/worker. FAULTS_ROLE=emit leaves the worker out,
// and FAULTS_HOLD=true has each run hold a connection of the pool.
package main
