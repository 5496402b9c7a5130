package programs_test

import (
	"errors"
	"strings"
	"testing"

	"eventsv2/test/programs"
)

// TestCloneWithoutHistoryIsReported (a shallow one, or a copy without git).
func TestCloneWithoutHistoryIsReported(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("0", 39) + "1"
	err := programs.BuildAt(t.Context(), commit, t.TempDir(), map[string]string{"worker": "cmd/worker"})
	if !errors.Is(err, programs.ErrNoHistory) || !strings.Contains(err.Error(), commit) {
		t.Errorf("%v", err)
	}
}
