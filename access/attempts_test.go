package access_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/access"
)

func TestRepeatedWrongTokensWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := access.NewAttempts()
		a.Accepted("good")
		a.Accepted("revoked")
		tries := 0
		for ; a.Wait("1.2.3.4", "wrong") == 0; tries++ {
			a.Refused("1.2.3.4", "wrong")
		}
		if tries != 20 {
			t.Errorf("%d failures at once, want 20", tries)
		}
		a.Refused("1.2.3.4", "revoked")
		for _, c := range []struct {
			address, credentials string
			waits                bool
		}{
			{"1.2.3.4", "wrong", true}, {"1.2.3.4", "new", true}, {"1.2.3.4", "", true},
			{"1.2.3.4", "good", false},   // whatever others do at its address
			{"1.2.3.4", "revoked", true}, // it was let in once, and is no longer
			{"5.6.7.8", "wrong", false},
		} {
			if wait := a.Wait(c.address, c.credentials); (wait > 0) != c.waits {
				t.Errorf("%q from %s waits %s", c.credentials, c.address, wait)
			}
		}
		time.Sleep(200 * time.Millisecond)
		if wait := a.Wait("1.2.3.4", "new"); wait != 0 {
			t.Errorf("after 200 ms it waits %s", wait)
		}
		for i := range 20_000 { // the memory is bounded, and loses nothing but counts of failures
			a.Accepted(fmt.Sprint(i))
		}
		a.Refused("1.2.3.4", "wrong")
		if wait := a.Wait("1.2.3.4", "19999"); wait != 0 {
			t.Errorf("the newest credentials wait %s", wait)
		}
	})
}
