package view

import (
	"strings"

	"github.com/lnquy/cron"
)

// scheduleWords describes a schedule of five fields; another one is in words already.
func scheduleWords(schedule string) string {
	if len(strings.Fields(schedule)) != 5 {
		return schedule
	}
	describer, err := cron.NewDescriptor(cron.Use24HourTimeFormat(true))
	if err != nil {
		return schedule
	}
	words, err := describer.ToDescription(schedule, cron.Locale_en)
	if err != nil {
		return schedule // which our parser knows, and the describer does not
	}
	return words
}
