package main

// mutants are all, in the order of the way of an event.
func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{
		sessionMutants(), serviceMutants(), lockTimeoutMutants(), rightMutants(), emitMutants(), groupMutants(), uniqueMutants(), lineMutants(), claimMutants(), lockWaitMutants(), lookMutants(), shareMutants(), machineMutants(), runMutants(), heartbeatMutants(),
		finishMutants(), fenceMutants(), ruleMutants(), pendingMutants(), relayMutants(), notifierMutants(), pgnotifyMutants(),
		fallbackMutants(), cronMutants(), historyMutants(), typedMutants(), outboxMutants(), webhookMutants(), limitMutants(),
	} {
		all = append(all, list...)
	}
	return all
}
