package memstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/storetest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Store {
		now := time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
		return memstore.New(memstore.Config{Clock: func() time.Time { // which no two operations find at one time
			now = now.Add(time.Microsecond)
			return now
		}})
	})
}
