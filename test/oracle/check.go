package oracle

// Check returns the violations in a history, those of an event together and at
// most ten of each, and nil when there is none. It only reads the history.
func Check(h *History) []Violation {
	j := newJudgement(h)
	for _, id := range j.order { // all of them first: one event may have to wait for others
		j.replay(j.lives[id])
	}
	for _, id := range j.order {
		l := j.lives[id]
		j.checkEnd(l)
		j.checkBytes(l)
		j.checkExtraRuns(l)
		j.checkFailures(l)
		j.checkRules(l)
		j.checkAmplification(l)
		j.checkProgress(l)
		j.checkUnanswered(l)
		j.checkSpoilt(l)
		j.checkGrid(l)
	}
	j.checkGroups()
	j.checkOrder()
	j.checkCompany()
	j.checkLimits()
	j.checkUnique()
	j.checkModes()
	j.checkChains()
	j.checkRates()
	j.checkPublications()
	j.checkRepeats()
	j.checkCrons()
	return j.violations
}
