package main

import "slices"

// scenarios are all of them, in the order of -list.
func scenarios() []scenario { return slices.Concat(usual(), versionScenarios()) }

// usual are the scenarios that are played when none is named. Those of two versions are not: they build
// another version of the programs first (make versions).
func usual() []scenario {
	return slices.Concat(pubsubScenarios(), relayScenarios(), claimScenarios(), databaseScenarios(), doorScenarios(), poolerScenarios(), featureScenarios(), searchPathScenarios(), togetherScenarios(), serverScenarios(), cronScenarios(), lockedScenarios())
}
