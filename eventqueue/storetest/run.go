package storetest

import (
	"slices"
	"testing"
)

// Run runs all cases. open returns a store on an empty database of its own, and closes it
// with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range slices.Concat(claimCases, ruleCases, endCases, attemptCases, waitCases, pendingCases, minuteCases, changeCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&session{t, open(t)})
		})
	}
}
