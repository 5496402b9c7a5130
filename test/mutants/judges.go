package main

// protocol are tests of package protocol: one rule each, and quick to fail.
func protocol(tests ...string) []judge { return []judge{{"./test/protocol", tests}} }

// pure are tests of the machine, which need no database.
func pure(tests ...string) []judge { return []judge{{"./eventqueue/machine", tests}} }

// pubsub are tests of the Pub/Sub notifier on the client library's fake server.
func pubsub(tests ...string) []judge { return []judge{{"./pubsubnotify", tests}} }

// cron are tests of the cron checker.
func cron(tests ...string) []judge { return []judge{{"./cronchecker", tests}} }

// bell are tests of the notifier on Postgres.
func bell(tests ...string) []judge { return []judge{{"./eventqueue/pgnotify", tests}} }

// mutants are all, in the order of the way of an event.
func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{
		emitMutants(), claimMutants(), lookMutants(), shareMutants(), machineMutants(), runMutants(), heartbeatMutants(),
		finishMutants(), fenceMutants(), ruleMutants(), owedMutants(), relayMutants(), notifierMutants(), pgnotifyMutants(),
		fallbackMutants(), cronMutants(),
	} {
		all = append(all, list...)
	}
	return all
}

// change is the only edit of most mutants.
func change(from, to string) []edit { return []edit{{from, to}} }
