package main

import "slices"

// scenarios are all of them, in the order of -list.
func scenarios() []scenario {
	return slices.Concat(pubsubScenarios(), relayScenarios(), claimScenarios(), databaseScenarios(), doorScenarios(), poolerScenarios(), featureScenarios(), searchPathScenarios(), togetherScenarios(), serverScenarios(), cronScenarios(), lockedScenarios(), versionScenarios())
}
