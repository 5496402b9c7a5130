package view_test

import (
	"testing"

	"eventsv2/internal/view"
)

func TestScheduleIsDescribedInWords(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string]string{
		"every fortnight":     "every fortnight",
		"30 9 * * mon-fri":    "At 09:30, Monday through Friday",
		"*/30 2 * * *":        "Every 30 minutes, between 02:00 and 02:59",
		"not a schedule at 2": "not a schedule at 2",
	} {
		if got := (view.Cron{Schedule: schedule}).Words(); got != want {
			t.Errorf("%q is described as %q, want %q", schedule, got, want)
		}
	}
}
