package oracle_test

import (
	"testing"

	"eventsv2/test/oracle"
)

// The first event of an ordering group has to be claimed as soon as any other, and the
// others when those before them have ended.
func TestOrderingGroupsMustProgress(t *testing.T) {
	t.Parallel()
	in := func(second float64) oracle.Record { return oracle.Record{At: at(second), OrderingKey: "line"} }
	delayed := in(0)
	delayed.Due = at(500)
	alone := func(second float64) oracle.Record { return oracle.Record{At: at(second), OrderingKey: "other"} }
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"the first one in time":          {history(life{1, in(0), 209}, life{2, in(1), 211}), ""},
		"the first one too late":         {history(life{1, in(0), 220}), "I13"},
		"the next one in time":           {history(life{1, in(0), 209}, life{2, in(1), 419}), ""},
		"the next one too late":          {history(life{1, in(0), 1}, life{2, in(1), 220}), "I13"},
		"beside another group":           {history(life{1, alone(0), 209}, life{2, in(0), 220}), "I13"},
		"it joins when it is due":        {history(life{1, delayed, 900}, life{2, in(250), 251}, life{3, in(499), 699}), ""},
		"those after it are no obstacle": {history(life{1, in(0), 309}, life{2, in(300), 310}), "I13"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}

// What was published beside a fault counts as lost when the relay has waited as long again
// as until then, and at least LostAfter.
func TestProgressResumesAfterASilence(t *testing.T) {
	t.Parallel()
	claimed := func(second float64) *script { return newScript().emit(0, 0).complete(second, "w", 1, 0) }
	for name, c := range map[string]struct {
		*script
		alone bool
		want  string
	}{
		"without a fault":            {claimed(210), false, ""},
		"without a fault, too late":  {claimed(211), false, "I13"},
		"after a short fault":        {claimed(215).fault(oracle.LostDatabase, "", 1, 5), false, ""},
		"after a short one, late":    {claimed(216).fault(oracle.LostDatabase, "", 1, 5), false, "I13"},
		"after a long fault":         {claimed(340).fault(oracle.LostDatabase, "", 1, 70), false, ""},
		"after a long one, late":     {claimed(341).fault(oracle.LostDatabase, "", 1, 70), false, "I13"},
		"after a very long fault":    {claimed(800).fault(oracle.LostDatabase, "", 1, 500), false, ""},
		"after a very long one late": {claimed(801).fault(oracle.LostDatabase, "", 1, 500), false, "I13"},
		"beside a silent notifier":   {claimed(300).fault(oracle.NotifierFault, "", 1, 900), true, ""},
		"beside one for too long":    {claimed(301).fault(oracle.NotifierFault, "", 1, 900), true, "I13"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &c.History
			h.Bounds.Alone = c.alone
			expect(t, h, c.want)
		})
	}
}
