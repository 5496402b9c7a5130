package main

// mutants are all, in the order of the way of an event.
func mutants() []mutant {
	var all []mutant
	for _, list := range [][]mutant{
		sessionMutants(), schemaMutants(), explainMutants(), serviceMutants(), lockTimeoutMutants(), rightMutants(), emitMutants(), unansweredMutants(), attributeMutants(), groupMutants(), uniqueMutants(), advanceMutants(), claimMutants(), refusedRowMutants(), lockWaitMutants(), recheckMutants(), shareMutants(), machineMutants(), runMutants(), heartbeatMutants(),
		completeMutants(), fenceMutants(), ruleMutants(), narrowRuleMutants(), pendingMutants(), relayMutants(), notifierMutants(), pgnotifyMutants(),
		fallbackMutants(), cronMutants(), historyMutants(), minuteMutants(), changeMutants(), replayMutants(), accessMutants(), apiMutants(), typedMutants(), outboxMutants(), webhookMutants(), limitMutants(),
	} {
		all = append(all, list...)
	}
	return all
}
