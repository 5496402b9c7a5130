package main

// protocol are tests of the worker and the relay on a store of the test's own: one rule each, and
// quick to fail.
func protocol(tests ...string) []judge { return []judge{{"./test/protocol", tests}} }

// stored are tests of package pgstore: the protocol's statements on a real Postgres.
func stored(tests ...string) []judge { return []judge{{"./eventqueue/pgstore", tests}} }

// pure are tests of the machine, which need no database.
func pure(tests ...string) []judge { return []judge{{"./eventqueue/machine", tests}} }

// queue are tests of package eventqueue.
func queue(tests ...string) []judge { return []judge{{"./eventqueue", tests}} }

// working are tests of package worker.
func working(tests ...string) []judge { return []judge{{"./eventqueue/worker", tests}} }

// maintaining are tests of package maintenance.
func maintaining(tests ...string) []judge { return []judge{{"./eventqueue/maintenance", tests}} }

// controlling are tests of package operate.
func controlling(tests ...string) []judge { return []judge{{"./eventqueue/operate", tests}} }

// letting are tests of package access.
func letting(tests ...string) []judge { return []judge{{"./access", tests}} }

// overHTTP are tests of package httpapi.
func overHTTP(tests ...string) []judge { return []judge{{"./httpapi", tests}} }

// typedEvents are tests of package typed.
func typedEvents(tests ...string) []judge { return []judge{{"./eventqueue/typed", tests}} }

// pubsub are tests of the Pub/Sub notifier on the client library's fake server.
func pubsub(tests ...string) []judge { return []judge{{"./pubsubnotify", tests}} }

// standIn are tests of the receiver that works while its notifier is down.
func standIn(tests ...string) []judge { return []judge{{"./eventqueue/fallback", tests}} }

// cron are tests of the cron checker.
func cron(tests ...string) []judge { return []judge{{"./cronchecker", tests}} }

// pgnotifier are tests of the notifier on Postgres.
func pgnotifier(tests ...string) []judge { return []judge{{"./eventqueue/pgnotify", tests}} }

// sessions are tests of connections, settings and poolers.
func sessions(tests ...string) []judge { return []judge{{"./eventqueue/pgsession", tests}} }

// serving are tests of package service.
func serving(tests ...string) []judge { return []judge{{"./service", tests}} }

// outbox are tests of the SQL functions.
func outbox(tests ...string) []judge { return []judge{{"./test/outbox", tests}} }

// web are tests of webhooks.
func web(tests ...string) []judge { return []judge{{"./webhook", tests}} }

// target are tests of HTTP targets.
func target(tests ...string) []judge { return []judge{{"./eventqueue/httptarget", tests}} }

// change is the only edit of most mutants.
func change(from, to string) []edit { return []edit{{from, to}} }

// migrating judges by the tests of the migrations.
func migrating(tests ...string) []judge { return []judge{{"./migrations", tests}} }

// inspecting judges by the tests of what operators are shown.
func inspecting(tests ...string) []judge { return []judge{{"./eventqueue/inspect", tests}} }
