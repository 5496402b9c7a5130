package main

// mutants are all, in the order of the way of an event.
func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{
		sessionMutants(), serviceMutants(), lockTimeoutMutants(), rightMutants(), emitMutants(), groupMutants(), uniqueMutants(), advanceMutants(), claimMutants(), lockWaitMutants(), recheckMutants(), shareMutants(), machineMutants(), runMutants(), heartbeatMutants(),
		completeMutants(), fenceMutants(), ruleMutants(), pendingMutants(), relayMutants(), notifierMutants(), pgnotifyMutants(),
		fallbackMutants(), cronMutants(), historyMutants(), typedMutants(), outboxMutants(), webhookMutants(), limitMutants(),
	} {
		all = append(all, list...)
	}
	return all
}
