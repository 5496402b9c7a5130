package main

// protocol are tests of package protocol: one rule each, and quick to fail.
func protocol(tests ...string) []judge { return []judge{{"./test/protocol", tests}} }

// pure are tests of the machine, which need no database.
func pure(tests ...string) []judge { return []judge{{"./eventqueue/machine", tests}} }

// queue are tests of package eventqueue.
func queue(tests ...string) []judge { return []judge{{"./eventqueue", tests}} }

// pubsub are tests of the Pub/Sub notifier on the client library's fake server.
func pubsub(tests ...string) []judge { return []judge{{"./pubsubnotify", tests}} }

// cron are tests of the cron checker.
func cron(tests ...string) []judge { return []judge{{"./cronchecker", tests}} }

// bell are tests of the notifier on Postgres.
func bell(tests ...string) []judge { return []judge{{"./eventqueue/pgnotify", tests}} }

// outbox are tests of the SQL functions.
func outbox(tests ...string) []judge { return []judge{{"./test/outbox", tests}} }

// web are tests of webhooks.
func web(tests ...string) []judge { return []judge{{"./webhook", tests}} }

// mutants are all, in the order of the way of an event.
func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{
		emitMutants(), groupMutants(), uniqueMutants(), lineMutants(), claimMutants(), patienceMutants(), lookMutants(), shareMutants(), machineMutants(), runMutants(), heartbeatMutants(),
		finishMutants(), fenceMutants(), ruleMutants(), owedMutants(), relayMutants(), notifierMutants(), pgnotifyMutants(),
		fallbackMutants(), cronMutants(), historyMutants(), typedMutants(), outboxMutants(), webhookMutants(), limitMutants(),
	} {
		all = append(all, list...)
	}
	return all
}

// change is the only edit of most mutants.
func change(from, to string) []edit { return []edit{{from, to}} }
