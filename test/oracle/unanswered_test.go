package oracle_test

import (
	"testing"

	"eventsv2/test/oracle"
)

// An event whose emit was not answered has to be found by its emitter, soon after its commit or
// after what else has happened to the emitter.
func TestUnansweredEmitsAreChecked(t *testing.T) {
	t.Parallel()
	lost := func(known float64) *script {
		s := newScript().emit(0, 0).kind(oracle.EmitUnanswered, 0, "e", 0)
		if known > 0 {
			s.kind(oracle.FoundAgain, known, "e", 0)
		}
		return s.complete(50, "w", 1, 0)
	}
	for name, c := range map[string]struct {
		*script
		want string
	}{
		"found in time":                    {lost(2), ""},
		"found too late":                   {lost(3), "I19"},
		"not found":                        {lost(0), "I19"},
		"found after another fault":        {lost(12).fault(oracle.LostDatabase, "e", 1, 5), ""},
		"found too late after another":     {lost(14).fault(oracle.LostDatabase, "e", 1, 5), "I19"},
		"after an outage for all":          {lost(12).fault(oracle.LostDatabase, "", 1, 5), ""},
		"beside a fault of somebody else":  {lost(12).fault(oracle.LostDatabase, "w", 1, 5), "I19"},
		"beside a fault of the notifier":   {lost(12).fault(oracle.NotifierFault, "", 1, 5), "I19"},
		"the emitter died":                 {lost(0).fault(oracle.Killed, "e", 1, 5), ""},
		"the emitter had died before":      {lost(0).fault(oracle.Killed, "e", -5, -1), "I19"},
		"the emitter ended":                {lost(0).kind(oracle.ProcessEnded, 1, "e", 0), ""},
		"the emitter ended much later":     {lost(0).kind(oracle.ProcessEnded, 4, "e", 0), "I19"},
		"the database was away for longer": {lost(0).fault(oracle.LostDatabase, "e", 1, 49), ""},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, &c.History, c.want) })
	}
}
