package pgstore_test

import (
	"testing"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/storetest"
	"eventsv2/test/testenv"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store { return pgstore.New(testenv.Pool(t)) })
}
