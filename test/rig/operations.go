package rig

import (
	"testing"

	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// RunOperations works on the bulk operations that are confirmed until each has ended.
func RunOperations(t testing.TB, operations *operate.Operations) {
	t.Helper()
	all, err := operations.List(testenv.Context(t), nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range all {
		if op.State == operate.OperationRunning {
			if _, err := operations.Await(testenv.Context(t), op.ID, func(operate.Operation) {}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
