package oracle_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/test/oracle"
)

// life is an event that runs once, from a second to the next one.
type life struct {
	event eventqueue.EventID
	oracle.Record
	runs float64 // 0: not
}

// history is that of some lives.
func history(lives ...life) *oracle.History {
	h := newScript().History
	for _, l := range lives {
		r := l.Record
		r.Kind, r.Event, r.Canvas, r.Value = oracle.Emitted, l.event, eventqueue.CanvasID{1}, "{}"
		if r.Handler == (eventqueue.HandlerKey{}) {
			r.Handler = key
		}
		if r.Due.IsZero() {
			r.Due = r.At
		}
		h.Add(r)
		if l.runs == 0 {
			h.Final.Rows = append(h.Final.Rows, oracle.Row{Event: l.event, Due: at(2000)})
			continue
		}
		h.Add(oracle.Record{Kind: oracle.Claimed, Event: l.event, At: at(l.runs), Attempt: 1, Actor: "w", Retries: r.Retries})
		h.Add(oracle.Record{Kind: oracle.RunStarted, Event: l.event, At: at(l.runs), Attempt: 1, Actor: "w", Value: "{}"})
		h.Add(oracle.Record{Kind: oracle.RunEnded, Event: l.event, At: at(l.runs + 1), Attempt: 1, Actor: "w", Result: oracle.OK})
		h.Add(oracle.Record{Kind: oracle.Written, Event: l.event, At: at(l.runs + 1), Attempt: 1, Actor: "w", Label: machine.ExecutesToCompletion})
	}
	return &h
}

func expect(t *testing.T, h *oracle.History, want string) {
	t.Helper()
	violations := oracle.Check(h)
	for _, v := range violations {
		if want == "" || v.Invariant != want {
			t.Errorf("unexpected: %v", v)
		}
	}
	if want != "" && len(violations) == 0 {
		t.Errorf("found nothing, want %s", want)
	}
}

func TestUniqueKeysAreChecked(t *testing.T) {
	t.Parallel()
	keyed := func(second float64, lasts time.Duration) oracle.Record {
		return oracle.Record{At: at(second), UniqueKey: "once", UniqueFor: lasts}
	}
	repeat := func(h *oracle.History, second float64, key string) *oracle.History {
		h.Add(oracle.Record{Kind: oracle.Repeated, Event: 1, At: at(second), Canvas: eventqueue.CanvasID{1}, UniqueKey: key})
		return h
	}
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"one after the other":           {history(life{1, keyed(0, 0), 1}, life{2, keyed(3, 0), 4}), ""},
		"a second one beside the first": {history(life{1, keyed(0, 0), 5}, life{2, keyed(3, 0), 4}), "unique"},
		"before the time after the end": {history(life{1, keyed(0, 9*time.Second), 1}, life{2, keyed(8, 0), 9}), "unique"},
		"after the time after the end":  {history(life{1, keyed(0, 9*time.Second), 1}, life{2, keyed(12, 0), 13}), ""},
		"a repeat while it holds":       {repeat(history(life{1, keyed(0, 9*time.Second), 1}), 10, "once"), ""},
		"a repeat when it is over":      {repeat(history(life{1, keyed(0, 9*time.Second), 1}), 12, "once"), "unique"},
		"a repeat of another key":       {repeat(history(life{1, keyed(0, 9*time.Second), 1}), 2, "twice"), "unique"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}

func TestModesOfUniqueKeysAreChecked(t *testing.T) {
	t.Parallel()
	keyed := func(mode string, second float64) oracle.Record {
		return oracle.Record{At: at(second), KeyTaken: at(second), UniqueKey: "soon", UniqueMode: mode}
	}
	soon, newest := func(second float64) oracle.Record { return keyed("until_start", second) }, keyed("replace", 0)
	repeat := func(event eventqueue.EventID, second float64, lives ...life) *oracle.History {
		h := history(lives...)
		r := soon(second)
		r.Kind, r.Event, r.Canvas = oracle.Repeated, event, eventqueue.CanvasID{1}
		h.Add(r)
		return h
	}
	// An event due at 9 s, and emits at 1 s that replace it.
	replace := func(runs float64, saw string, emits ...oracle.Record) *oracle.History {
		newest.Due = at(9)
		h := history(life{1, newest, 0})
		h.Final.Rows[0].Due = at(2000)
		for _, r := range emits {
			r.Kind, r.Event, r.Canvas, r.At, r.UniqueKey, r.UniqueMode = oracle.Replaced, 1, eventqueue.CanvasID{1}, at(1), "soon", "replace"
			h.Add(r)
		}
		if runs > 0 {
			h.Add(oracle.Record{Kind: oracle.Claimed, Event: 1, At: at(runs), Attempt: 1, Actor: "w"})
			h.Add(oracle.Record{Kind: oracle.RunStarted, Event: 1, At: at(runs), Attempt: 1, Actor: "w", Value: saw})
			h.Final.Rows[0].Locked = true
		}
		return h
	}
	to := func(meant, row float64, value string) oracle.Record {
		return oracle.Record{Due: at(meant), RowDue: at(row), Value: value}
	}
	bounded := func(most time.Duration, r oracle.Record) oracle.Record { r.MaxWait = most; return r }
	ordered := replace(0, "", to(20, 9, "1"))
	ordered.Records[0].OrderingKey = "line"
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"while the first one runs":       {history(life{1, soon(0), 1}, life{2, soon(1.5), 4}), ""},
		"when the first one has ended":   {history(life{1, soon(0), 1}, life{2, soon(3), 4}), ""},
		"while the first one waits":      {history(life{1, soon(0), 5}, life{2, soon(1), 7}), "unique"},
		"a repeat while it waits":        {repeat(1, 0.5, life{1, soon(0), 1}), "unique"}, // it ran before the emit had committed
		"a repeat while it runs":         {repeat(1, 1.5, life{1, soon(0), 1}), "unique"},
		"a repeat of what waits":         {repeat(1, 0.5, life{1, soon(0), 0}), ""},
		"a repeat of the one before":     {repeat(1, 1.7, life{1, soon(0), 1}, life{2, soon(1.5), 0}), "unique"},
		"replaced":                       {replace(0, "", to(20, 20, "1")), ""},
		"runs with the last value":       {replace(20, "2", to(15, 15, "1"), to(20, 20, "2")), ""},
		"runs with an older value":       {replace(20, "1", to(15, 15, "1"), to(20, 20, "2")), "I8"},
		"runs earlier":                   {replace(10, "1", to(20, 20, "1")), "I6"},
		"due earlier than meant":         {replace(0, "", to(20, 1, "1")), "unique"},
		"bounded":                        {replace(0, "", bounded(12*time.Second, to(20, 12, "1"))), ""},
		"later than the bound":           {replace(0, "", bounded(12*time.Second, to(20, 20, "1"))), "unique"},
		"in a group that it has not met": {ordered, "unique"},
		"twice in one transaction":       {replace(0, "", oracle.Record{Due: at(15), Value: "1"}, to(20, 9, "2")), ""},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}

func TestGridsAreChecked(t *testing.T) {
	t.Parallel()
	action := func(kind oracle.Kind, second float64, attempt int32, name, value string, took ...string) oracle.Record {
		r := oracle.Record{Kind: kind, Event: 1, At: at(second), Attempt: attempt, Actor: "w", Actions: []string{name}, Value: value, Took: map[string]string{}}
		for i := 0; i < len(took); i += 2 {
			r.Took[took[i]] = took[i+1]
		}
		return r
	}
	begun, done, stored := oracle.ActionBegun, oracle.ActionDone, oracle.ActionStored
	// Two runs, from 1 s and 3 s to a second later, of which the second ends well.
	run := func(actions ...oracle.Record) *oracle.History {
		h := newScript().History
		h.Add(oracle.Record{Kind: oracle.Emitted, Event: 1, At: at(0), Due: at(0), Canvas: eventqueue.CanvasID{1}, Handler: key, Value: "{}"})
		for attempt, end := range []machine.Label{machine.RetryAllowed, machine.ExecutesToCompletion} {
			r := oracle.Record{Event: 1, At: at(float64(1 + 2*attempt)), Attempt: int32(attempt + 1), Actor: "w", Retries: attempt, Value: "{}", Actions: []string{"a", "b"}}
			for _, r.Kind = range []oracle.Kind{oracle.Claimed, oracle.RunStarted} {
				h.Add(r)
			}
			r.At, r.Kind, r.Result, r.Label = r.At.Add(time.Second), oracle.RunEnded, []oracle.Result{oracle.Failed, oracle.OK}[attempt], end
			h.Add(r)
			r.Kind = oracle.Written
			h.Add(r)
		}
		h.Records = append(h.Records, actions...)
		return &h
	}
	all := []oracle.Record{
		action(begun, 1.1, 1, "a", ""), action(done, 1.2, 1, "a", "1"), action(stored, 1.3, 0, "a", "1"), action(begun, 1.4, 1, "b", "", "a", "1"),
		action(begun, 3.1, 2, "b", "", "a", "1"), action(done, 3.2, 2, "b", "2"), action(stored, 3.3, 0, "b", "2"),
	}
	with := func(more ...oracle.Record) *oracle.History { return run(append(all[:len(all):len(all)], more...)...) }
	left := with()
	left.Final.Outputs = []eventqueue.EventID{1}
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"each once, b after a failure":    {with(), ""},
		"a is called again":               {with(action(begun, 3.1, 2, "a", "")), "grids"},
		"by a run that has lost the lock": {with(action(begun, 3.1, 1, "c", "")), ""},
		"twice in a run":                  {with(action(begun, 3.4, 2, "b", "", "a", "1")), "grids"},
		"took what was not stored":        {with(action(begun, 3.4, 2, "c", "", "a", "0")), "grids"},
		"stored twice":                    {with(action(stored, 3.4, 0, "a", "3")), "grids"},
		"completed without b":             {run(all[:4]...), "grids"},
		"put out and not stored":          {run(all[:6]...), "grids"},
		"outputs are left":                {left, "grids"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}

func TestChildrenAreChecked(t *testing.T) {
	t.Parallel()
	of := eventqueue.HandlerKey{Module: "WORKER", Name: "child", Modifier: "_"}
	parent := oracle.Record{At: at(0), Children: []eventqueue.HandlerKey{of}}
	child := oracle.Record{At: at(2), Handler: of, Parent: 1}
	stray := oracle.Record{At: at(2), Parent: 1}
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"once":                 {history(life{1, parent, 1}, life{2, child, 3}), ""},
		"twice":                {history(life{1, parent, 1}, life{2, child, 3}, life{3, child, 3}), "chains"},
		"not at all":           {history(life{1, parent, 1}), "chains"},
		"before the parent":    {history(life{1, parent, 0}, life{2, child, 3}), "chains"},
		"of no such handler":   {history(life{1, parent, 1}, life{2, child, 3}, life{3, stray, 4}), "chains"},
		"of no parent at all":  {history(life{2, child, 3}), "chains"},
		"a parent that waits":  {history(life{1, parent, 0}), ""},
		"nobody has a handler": {history(life{1, oracle.Record{At: at(0), Foreign: true}, 0}), ""},
		"and yet it ran":       {history(life{1, oracle.Record{At: at(0), Foreign: true}, 1}), "I1"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}

func TestRateLimitsAreChecked(t *testing.T) {
	t.Parallel()
	scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{1}, Module: key.Module, Name: key.Name}
	two := []life{{1, oracle.Record{At: at(1)}, 2}, {2, oracle.Record{At: at(1)}, 4}}
	granted := func(mode ratelimit.Mode, untold int, ran int, grants ...float64) *oracle.History {
		h := newScript().History
		h.Bounds.Untold = untold
		h.Rates = []oracle.RateChange{{At: at(0), Limit: operate.RateLimit{Scope: scope, PerMinute: 2, Mode: mode}}}
		for _, second := range grants {
			h.Add(oracle.Record{Kind: oracle.Granted, At: at(second), Actor: "w", Scope: scope, Granted: 1, Ran: ran})
		}
		h.Records = append(h.Records, history(two...).Records...)
		return &h
	}
	removed := granted(ratelimit.Exact, 0, 0)
	removed.Rates = append(removed.Rates, oracle.RateChange{At: at(0.5), Limit: operate.RateLimit{Scope: scope}})
	changed := func(perMinute int, grants ...float64) *oracle.History { // to one limit at 2.5 s, and back at 2.7 s
		h := granted(ratelimit.Exact, 0, 0, grants...)
		limit := operate.RateLimit{Scope: scope, PerMinute: perMinute}
		if perMinute == 0 {
			limit.PerDay = 9
		}
		h.Rates = append(h.Rates, oracle.RateChange{At: at(2.5), Limit: limit},
			oracle.RateChange{At: at(2.7), Limit: h.Rates[0].Limit})
		return h
	}
	replaced := changed(2, 1, 2, 3)
	replaced.Rates[1].Limit.PerMinute = 0
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"each was granted":            {granted(ratelimit.Exact, 0, 0, 1, 3), ""},
		"one was not":                 {granted(ratelimit.Exact, 0, 0, 1), "rates"},
		"too many in a minute":        {granted(ratelimit.Exact, 0, 0, 1, 2, 3), "rates"},
		"so many in two minutes":      {granted(ratelimit.Exact, 0, 0, 1, 2, 61), ""},
		"lowered, and put back":       {changed(1, 1, 2), ""},
		"and forgotten what ran":      {changed(1, 1, 2, 3), "rates"},
		"raised, and put back":        {changed(3, 1, 2, 3), ""},
		"raised, and exceeded":        {changed(3, 1, 2, 3, 4), "rates"},
		"in the window after it":      {changed(3, 1, 61, 62, 63), "rates"},
		"limited by the day only":     {changed(0, 1, 2, 3, 4), ""},
		"removed, and put back":       {replaced, "rates"},
		"approximate, told later":     {granted(ratelimit.Approximate, 2, 0), ""},
		"approximate, and too many":   {granted(ratelimit.Approximate, 1, 0), "rates"},
		"approximate, told in time":   {granted(ratelimit.Approximate, 1, 1, 1), ""},
		"the limit had been removed":  {removed, ""},
		"no limit that anybody knows": {history(two...), ""},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}

// What somebody wrote with a lock is claimed when that has expired, and with retries that
// count as his.
func TestRowsWrittenByHandAreChecked(t *testing.T) {
	t.Parallel()
	locked := oracle.Record{At: at(0), LockedAt: at(0), Retries: 5}
	expect(t, history(life{1, locked, 61}), "")
	expect(t, history(life{1, locked, 59}), "I4")
}

// A FAILED event without a run and without a claim that was lost accuses its worker.
func TestFailureWithoutARunIsReported(t *testing.T) {
	t.Parallel()
	h := newScript().emit(0, 0).claim(1, "w", 1, 0).write(2, "w", 1, machine.RetryTooMany, 0).History
	h.Final.Log = []oracle.LogRow{{Event: 7, Status: "FAILED", Value: `{"a":1}`}}
	found := false
	for _, v := range oracle.Check(&h) {
		found = found || v.Invariant == "I18"
	}
	if !found {
		t.Error("I18 is not found")
	}
}

// Where workers find events by themselves, a notifier that is down excuses nothing.
func TestNotifierOutageExcusesNoDelayWithAFallback(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		h := newScript().emit(0, 0).claim(500, "w", 1, 0).run(500, "w", 1, oracle.OK).write(501, "w", 1, machine.ExecutesToCompletion, 0).History
		h.Faults = []oracle.Fault{{Kind: oracle.NotifierFault, From: at(0), To: at(499)}}
		h.Bounds.Alone = alone
		want := ""
		if alone {
			want = "I13"
		}
		expect(t, &h, want)
	}
}

// A paused event costs one publish more in an ordering group, which admits it, and for
// each repeat of its emit, which asks a publisher that was down with it.
func TestPublishesOfAPausedEventAreChecked(t *testing.T) {
	t.Parallel()
	paused := func(keys oracle.Record, published int, repeats ...float64) *oracle.History {
		s := newScript().pause(0, 0.1, 1, true)
		s.Final.Rules = []oracle.RuleRow{{Type: operate.PauseRule, Scope: scope()}}
		keys.Kind, keys.Event, keys.Canvas, keys.Handler, keys.Value = oracle.Emitted, 7, scope().Canvas, key, "{}"
		keys.At, keys.Due = at(0.5), at(0.5)
		s.Add(keys)
		for _, second := range repeats {
			s.Add(oracle.Record{Kind: oracle.Repeated, Event: 7, At: at(second), Canvas: scope().Canvas, UniqueKey: keys.UniqueKey})
		}
		s.repeat(oracle.Published, published)
		return &s.row(0.5, false).History
	}
	found := func(h *oracle.History) *oracle.History {
		h.Add(oracle.Record{Kind: oracle.FoundAgain, Event: 7, At: at(3)})
		return h
	}
	untaken := func(h *oracle.History) *oracle.History {
		h.Add(oracle.Record{Kind: oracle.TakeUnanswered, Event: 7, At: at(3)})
		return h
	}
	unique, ordered := oracle.Record{UniqueKey: "once"}, oracle.Record{OrderingKey: "line"}
	for name, c := range map[string]struct {
		h    *oracle.History
		want string
	}{
		"twice":                      {paused(unique, 2), ""},
		"three times":                {paused(unique, 3), "I11"},
		"with a repeat":              {paused(unique, 3, 3), ""},
		"too often for a repeat":     {paused(unique, 4, 3), "I11"},
		"with two repeats":           {paused(unique, 4, 3, 4), ""},
		"found again":                {found(paused(unique, 4)), ""},
		"taken without an answer":    {untaken(paused(unique, 4)), ""},
		"too often for one take":     {untaken(paused(unique, 5)), "I11"},
		"too often for that":         {found(paused(unique, 5)), "I11"},
		"in a group":                 {paused(ordered, 3), ""},
		"too often for one in group": {paused(ordered, 4), "I11"},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); expect(t, c.h, c.want) })
	}
}
