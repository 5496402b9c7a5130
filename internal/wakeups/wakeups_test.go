package wakeups_test

import (
	"errors"
	"strings"
	"testing"

	"eventsv2/internal/wakeups"
)

type advised struct{ error }

func (advised) Advice() string { return "look at the proxy" }

// TestListenerIsReportedUntilItReceives, with the advice of its cause.
func TestListenerIsReportedUntilItReceives(t *testing.T) {
	t.Parallel()
	var state wakeups.State
	if err := state.Failure(); err != nil {
		t.Errorf("at first: %v", err)
	}
	state.Is(errors.New("refused"))
	why := new(wakeups.Error)
	if err := state.Failure(); !errors.As(err, &why) || !strings.Contains(err.Error(), "refused") || strings.Contains(why.Advice(), "refused") {
		t.Errorf("it says %v, and advises %q", err, why.Advice())
	}
	state.Is(advised{errors.New("silent")})
	if err := state.Failure(); !errors.As(err, &why) || why.Advice() != "look at the proxy" {
		t.Errorf("it says %v, and advises %q", err, why.Advice())
	}
	state.Ends()
	if err := state.Failure(); err != nil {
		t.Errorf("when it hears: %v", err)
	}
}
