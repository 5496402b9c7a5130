package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/faults/emission"
	"eventsv2/test/attack/record"
	"eventsv2/test/oracle"
)

// made is a made record of one event, 7, with all that a rig knows of it.
type made struct {
	rig
	trace *record.Trace
	row   record.RowState
	extra []*record.Trace // of other events
}

func second(n float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(n * float64(time.Second)))
}

// madeEvent is one that was emitted at second 0.
func madeEvent() *made {
	m := &made{rig: rig{labels: map[string][]*entry{}, judge: judge{target: &target{visits: map[eventqueue.EventID][]*visit{}}, canFail: map[string]bool{},
		operators: map[string]bool{"eventctl": true}, lockTimeout: 5 * time.Second}}, row: record.RowState{DueMicros: second(0).UnixMicro()}}
	m.trace = &record.Trace{ID: 7, Entered: &record.Entered{Canvas: canvas(0), Handler: handler("work").Key, Value: "{}"}}
	m.trace.Changes = []record.Change{{At: second(0), Writer: "emitter", Op: record.Insert, New: m.row}}
	m.note(&entry{id: 7, label: "l", value: "{}", emitted: second(0.1), due: second(0)})
	return m
}

func (m *made) write(at float64, by string, op byte, edit func(*record.RowState)) {
	old := m.row
	edit(&m.row)
	m.trace.Changes = append(m.trace.Changes, record.Change{At: second(at), Writer: by, Op: op, Old: old, New: m.row})
}

func (m *made) claim(at float64, by string) {
	m.write(at, by, record.Update, func(r *record.RowState) { r.LockedMicros, r.Attempts = second(at).UnixMicro(), r.Attempts+1 })
}

// retry is the end of a claim that uses an attempt.
func (m *made) retry(at float64, by string) {
	m.write(at, by, record.Update, func(r *record.RowState) { r.LockedMicros, r.Retries = 0, r.Retries+1 })
}

func (m *made) end(at float64, by, status string) {
	m.trace.Ending = &record.Ending{Status: status, Retries: m.row.Retries, Value: "{}"}
	m.write(at, by, record.Delete, func(r *record.RowState) { *r = record.RowState{} })
}

// visit is a run from one second to another, which goes on for 0, with the status of its answer.
func (m *made) visit(from, to float64, process string, status int) *visit {
	v := &visit{event: 7, process: process, value: "{}", began: second(from), status: status, nth: len(m.target.visits[7]) + 1}
	if to > 0 {
		v.ended = second(to)
	}
	m.target.visits[7] = append(m.target.visits[7], v)
	return v
}

// well is an event that runs once, from second 1 on.
func (m *made) well() *visit {
	m.claim(1, "w1")
	v := m.visit(1.1, 2, "w1", 200)
	m.end(2.1, "w1", "COMPLETED")
	return v
}

// again has w2 run it well from second 7 on.
func (m *made) again() {
	m.claim(7, "w2")
	m.visit(7.1, 8, "w2", 200)
	m.end(8.1, "w2", "COMPLETED")
}

// twice is one whose first run has ended somehow without being written, and that w2 takes over.
func (m *made) twice(to float64, status int) {
	m.claim(1, "w1")
	m.visit(1.1, to, "w1", status)
	m.again()
}

// released is one whose first run ends and is given back, and that w2 runs again.
func (m *made) released(to float64, status int) {
	m.claim(1, "w1")
	m.visit(1.1, to, "w1", status)
	m.write(2.1, "w1", record.Update, func(r *record.RowState) { r.LockedMicros = 0 })
	m.again()
}

// failed is one whose only run fails, of a handler that may not be tried again.
func (m *made) failed() {
	m.claim(1, "w1")
	m.visit(1.1, 2, "w1", 500)
	m.end(2.1, "w1", record.Failed)
	m.trace.Entered.Handler.Name = "once"
	once := handler("once")
	once.MaxRetries = 0
	m.handlers = append(m.handlers, once)
}

// died is one whose worker died before a handler saw it, which used an attempt beside those that it is said to have used.
func (m *made) died(used int32) {
	m.row.Retries = used
	m.claim(1, "w1")
	m.fault(oracle.Killed, "w1", second(2), second(12))
	m.write(6.5, "w2", record.Update, func(r *record.RowState) { r.LockedMicros, r.Retries = 0, used+1 })
	m.again()
}

// child adds what the completion of the event has emitted for a handler.
func (m *made) child(id eventqueue.EventID, key eventqueue.HandlerKey) {
	other := madeEvent()
	other.trace.Entered.Handler, other.trace.Entered.Parent = key, 7
	other.well()
	for i := range other.trace.Changes {
		other.trace.Changes[i].At = other.trace.Changes[i].At.Add(10 * time.Second)
	}
	for _, v := range other.target.visits[7] {
		v.event, v.began, v.ended = id, v.began.Add(10*time.Second), v.ended.Add(10*time.Second)
		m.target.visits[id] = append(m.target.visits[id], v)
	}
	other.trace.ID = id
	m.extra = append(m.extra, other.trace)
}

// rule is added and lifted by somebody.
func rule(from, to float64) (settings []setting) {
	for _, at := range []float64{from, to} {
		s := setting{at: second(at), what: "scheduling_rules", gone: at == to}
		s.fields.Canvas, s.fields.Module, s.fields.Name, s.fields.Rule = canvas(0), "WORKER", "work", "pause"
		settings = append(settings, s)
	}
	return settings
}

// TestJudgeReportsEachFault gives the judge what one event may have come to.
func TestJudgeReportsEachFault(t *testing.T) {
	t.Parallel()
	type settings = []setting
	for name, c := range map[string]struct {
		play      func(m *made)
		settings  settings
		rules     settings // at the end
		rewritten []string
		want      string // what is found, in alphabetical order
	}{
		"well": {play: func(m *made) { m.well() }},
		"failed, then well": {play: func(m *made) {
			m.claim(1, "w1")
			m.visit(1.1, 2, "w1", 500)
			m.retry(2.1, "w1")
			m.again()
		}},
		"twice":                   {play: func(m *made) { m.twice(2, 200) }, want: "I3, unexplained duplicates"},
		"twice, and explained":    {play: func(m *made) { m.twice(2, 200); m.fault(oracle.Killed, "w1", second(2), second(12)) }},
		"of one that stood still": {play: func(m *made) { m.released(2, 200); m.fault(oracle.Frozen, "w2", second(1), second(7.1)) }},
		"excuse of another":       {play: func(m *made) { m.twice(2, 200); m.fault(oracle.Killed, "w2", second(1), second(2)) }, want: "I3, unexplained duplicates"},
		"excuse of another day": {play: func(m *made) { m.twice(2, 200); m.fault(oracle.LostDatabase, "", second(3600), second(7200)) },
			want: "I3, unexplained duplicates"},
		"excuse of long after":                    {play: func(m *made) { m.twice(2, 200); m.fault(oracle.LostDatabase, "w1", second(4.1), second(7)) }, want: "unexplained duplicates"},
		"its completion was lost":                 {play: func(m *made) { m.twice(2, 200); m.fault(oracle.LostDatabase, "w1", second(4), second(7)) }},
		"stopped in good order":                   {play: func(m *made) { m.twice(2, 200); m.fault(oracle.Stopped, "w1", second(2), second(7)) }, want: "I3"},
		"given back after it ended well":          {play: func(m *made) { m.released(2, 200) }, want: "unexplained duplicates"},
		"hung up":                                 {play: func(m *made) { m.released(2, 0) }, want: "unexplained duplicates"},
		"hung up before a fault":                  {play: func(m *made) { m.released(2, 0); m.fault(oracle.Killed, "w1", second(4.1), second(7)) }, want: "unexplained duplicates"},
		"hung up as it died":                      {play: func(m *made) { m.twice(2, 0); m.fault(oracle.Killed, "w1", second(2), second(12)) }},
		"never ended":                             {play: func(m *made) { m.released(0, 0) }, want: "unexplained duplicates"},
		"never ended and died":                    {play: func(m *made) { m.twice(0, 0); m.fault(oracle.Killed, "w1", second(6.9), second(7)) }},
		"early":                                   {play: func(m *made) { m.well(); m.ledger[0].due = second(1.05) }, want: "I6"},
		"changed before its handler":              {play: func(m *made) { m.well().value = "[]" }, want: "I8"},
		"changed in the queue and at its handler": {play: func(m *made) { m.well().value = "[]"; m.trace.Entered.Value = "[]" }, want: "I8"},
		"changed in event_log":                    {play: func(m *made) { m.well(); m.trace.Ending.Value = "[]" }, want: "I8"},
		"lost":                                    {play: func(m *made) { m.well(); m.trace.Ending = nil }, want: "I1"},
		"never on record":                         {play: func(m *made) { m.trace.ID = 8 }, want: "I1"},
		"stuck":                                   {play: func(*made) {}, want: "I1, stuck"},
		"left for later, though it ended well": {play: func(m *made) {
			m.claim(1, "w1")
			m.visit(1.1, 2, "w1", 200)
			m.write(2.1, "w1", record.Update, func(r *record.RowState) { r.LockedMicros, r.DueMicros = 0, second(3600).UnixMicro() })
		}, want: "stuck"},
		"left under a rule":         {play: func(*made) {}, settings: rule(-5, 100)[:1], rules: rule(-5, 100)[:1], want: "stuck"},
		"its row was rewritten":     {play: func(m *made) { m.well(); m.trace.Changes[1].Rewritten = true }, want: "rewritten"},
		"its record was rewritten":  {play: func(m *made) { m.well() }, rewritten: []string{"event_log UPDATE"}, want: "rewritten"},
		"its key was dropped":       {play: func(m *made) { m.well(); m.ledger[0].key = "k" }, want: "another ordering key"},
		"run before it was claimed": {play: func(m *made) { m.visit(0.2, 0.3, "w1", 500); m.well() }, want: "runs without a claim"},
		"run before it was claimed, by a database that forgets": {play: func(m *made) {
			m.exempt = []string{withoutClaim}
			m.visit(0.2, 0.3, "w1", 500)
			m.well()
		}},
		"taken over within the longest lock timeout": {play: func(m *made) {
			m.holds(10 * time.Second)
			m.holds(time.Second)
			m.twice(2, 200)
			m.fault(oracle.Killed, "w1", second(2), second(12))
		}, want: "I4"},
		"undead": {play: func(m *made) { m.well(); m.trace.Changes = m.trace.Changes[:2] }, want: "I1, stuck"},
		"failed without a run": {play: func(m *made) {
			m.claim(1, "w1")
			m.end(1.5, "w1", record.Failed)
		}, want: "I15, I18, failed"},
		"failed":                     {play: (*made).failed, want: "failed"},
		"failed as its handler does": {play: func(m *made) { m.canFail["l"] = true; m.failed() }},
		"failed by answers that asked for a later time": {play: func(m *made) { m.canFail["l"] = true; m.failed(); m.target.visits[7][0].snoozes = true }, want: "I15"},
		"never run": {play: func(m *made) {
			m.claim(1, "w1")
			m.end(1.5, "w1", "COMPLETED")
		}, want: "I1"},
		"an attempt without a run": {play: func(m *made) {
			m.claim(1, "w1")
			m.retry(2.1, "w1")
			m.again()
		}, want: "attempts used without a run"},
		"an attempt of a worker that died":            {play: func(m *made) { m.died(0) }, want: "I9"},
		"so it is, in programs that cannot do better": {play: func(m *made) { m.exempt = []string{"I9"}; m.died(0) }},
		"but not twice":      {play: func(m *made) { m.exempt = []string{"I9"}; m.died(1) }, want: "attempts used without a run"},
		"written by another": {play: func(m *made) { m.well(); m.trace.Changes[2].Writer = "w2" }, want: "I1, I5"},
		"claimed twice":      {play: func(m *made) { m.claim(0.5, "w2"); m.well(); m.fault(oracle.Killed, "w2", second(0.6), second(12)) }, want: "I4"},
		"put off by an operator, and run too early": {play: func(m *made) {
			m.write(0.5, "eventctl", record.Update, func(r *record.RowState) { r.DueMicros = second(30).UnixMicro() })
			m.well()
		}, want: "I6"},
		"claimed under a rule":        {play: func(m *made) { m.well() }, settings: rule(-5, 5), want: "I7"},
		"claimed as a rule was added": {play: func(m *made) { m.well() }, settings: rule(0.5, 5)},
		"claimed after a rule":        {play: func(m *made) { m.well() }, settings: rule(-5, 0.9)},
		"a key of its own":            {play: func(m *made) { m.well(); m.unique("a"); m.repeat(7, "a") }},
		"a key of another":            {play: func(m *made) { m.well(); m.unique("a"); m.repeat(7, "b") }, want: "unique"},
		"a key that made two events":  {play: func(m *made) { m.well(); m.unique("a"); m.repeat(8, "a") }, want: "I1, unique"},
		"a chain":                     {play: func(m *made) { m.well(); m.children(8, 9) }},
		"a chain with one too few":    {play: func(m *made) { m.well(); m.children(8) }, want: "chains"},
		"a chain with one too many":   {play: func(m *made) { m.well(); m.children(8, 9, 10) }, want: "chains"},
		"a chain of other bytes": {play: func(m *made) {
			m.well()
			m.children(8, 9)
			m.target.visits[9][0].value = "[]"
		}, want: "I8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := madeEvent()
			c.play(m)
			e := evidence{traces: record.Traces{m.trace.ID: m.trace}, settings: c.settings, rules: c.rules, rewritten: c.rewritten, at: second(100)}
			for _, trace := range m.extra {
				e.traces[trace.ID] = trace
			}
			j, err := m.judge.judge(&e)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(j.times)), ", "); got != c.want {
				t.Errorf("found %q, want %q: %v", got, c.want, j.first)
			}
		})
	}
}

func (m *made) unique(key string) { m.ledger[0].unique, m.ledger[0].uniqueFor = key, time.Hour }

func (m *made) repeat(id eventqueue.EventID, key string) {
	m.repeats = append(m.repeats, oracle.Record{Kind: oracle.Repeated, At: second(10), Event: id, Canvas: canvas(0), UniqueKey: key})
}

func (m *made) children(ids ...eventqueue.EventID) {
	m.ledger[0].typed = true
	keys := emission.Children()
	for i, id := range ids {
		m.child(id, keys[i%len(keys)])
	}
}

// TestJudgeReportsTooManyRunsAtOnce, under a concurrency limit and of an ordering key: as the database has claimed it, and as
// handlers saw it.
func TestJudgeReportsTooManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	both := func(key, row string, max int, apart float64) (*made, evidence) {
		m, other := madeEvent(), madeEvent()
		m.well()
		other.well()
		m.trace.Entered.OrderingKey, other.trace.Entered.OrderingKey = row, row
		shift := time.Duration(apart * float64(time.Second))
		for i := range other.trace.Changes {
			ch := &other.trace.Changes[i]
			ch.At = ch.At.Add(shift)
			for _, row := range []*record.RowState{&ch.Old, &ch.New} {
				if row.LockedMicros != 0 {
					row.LockedMicros += shift.Microseconds()
				}
			}
		}
		v := other.target.visits[7][0]
		v.event, v.began, v.ended = 8, v.began.Add(shift), v.ended.Add(shift)
		m.target.visits[8] = []*visit{v}
		other.trace.ID = 8
		m.ledger[0].key = key
		m.note(&entry{id: 8, label: "l", value: "{}", key: key, emitted: second(0.1), due: second(0)})
		e := evidence{traces: record.Traces{7: m.trace, 8: other.trace}, at: second(100)}
		if max > 0 {
			limit := setting{at: second(-1), what: "concurrency_limits"}
			limit.fields.Canvas, limit.fields.Group, limit.fields.Max = canvas(0), "canvas", max
			e.settings = []setting{limit}
		}
		return m, e
	}
	for name, c := range map[string]struct {
		key   string // of the emit
		row   string // of the row
		max   int
		apart float64
		want  string
	}{
		"one after the other":                  {"k", "k", 1, 3, ""},
		"at once, of no key":                   {"", "", 0, 0.2, ""},
		"at once, of one key":                  {"k", "k", 0, 0.2, "order"},
		"at once, of a key that the rows lost": {"k", "", 0, 0.2, "another ordering key, order"},
		"at once, under a limit of 2":          {"", "", 2, 0.2, ""},
		"at once, under a limit of 1":          {"", "", 1, 0.2, "limits"},
		"at once, of one key, limit 2":         {"k", "k", 2, 0.2, "order"},
	} {
		m, e := both(c.key, c.row, c.max, c.apart)
		j, err := m.judge.judge(&e)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(j.times)), ", "); got != c.want {
			t.Errorf("%s: found %q, want %q: %v", name, got, c.want, j.first)
		}
		if m.inOrder("l"); (len(m.failures) > 0) != (c.apart < 1) {
			t.Errorf("%s: of the runs of a key it says %q", name, m.failures)
		}
		m.failures = nil
		if m.atMost("l", 1); (len(m.failures) > 0) != (c.apart < 1) {
			t.Errorf("%s: of the runs at once it says %q", name, m.failures)
		}
	}
	m, e := both("", "", 1, 3)
	e.settings[0].fields.Group = "handler"
	if _, err := m.judge.judge(&e); err == nil {
		t.Error("a limit that is not judged is taken")
	}
}
