package eventqueue_test

import (
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

func TestRunOfATestCannotReport(t *testing.T) {
	t.Parallel()
	var run eventqueue.Run
	for _, err := range []error{run.SetResult(1), run.Progress(0.5, "")} {
		if err == nil || !strings.Contains(err.Error(), "begin the run with Begin of package eventstest") {
			t.Errorf("%v", err)
		}
	}
}

// TestPermanentOfNoErrorIsAnError, which can be printed.
func TestPermanentOfNoErrorIsAnError(t *testing.T) {
	t.Parallel()
	if err := eventqueue.Permanent(nil); !eventqueue.IsPermanent(err) || err.Error() != "Permanent(nil)" {
		t.Errorf("it is %v", err)
	}
}
