package main

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

// TestTheChecker gives the judge what one event may have come to.
func TestTheChecker(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	good := visit{event: 7, process: "w1", value: "{}", began: at, ended: at.Add(time.Second), status: 200}
	failed := good
	failed.status = 500
	later := good
	later.process, later.began, later.ended = "w2", at.Add(5*time.Second), at.Add(6*time.Second)
	early := good
	early.began = at.Add(-time.Second)
	hungUp, endless := good, good
	hungUp.status, endless.status = 0, 0
	endless.ended = time.Time{}
	changed := good
	changed.value = "[]"
	completed := ended{times: 1, status: "COMPLETED", value: "{}"}
	dead := ended{times: 1, status: "FAILED", value: "{}"}
	for name, c := range map[string]struct {
		visits    []visit
		end       ended
		left      bool
		unknown   bool
		allowance allowance
		want      string
	}{
		"well":                    {visits: []visit{good}, end: completed},
		"failed, then well":       {visits: []visit{failed, later}, end: ended{times: 1, status: "COMPLETED", value: "{}", retries: 1}},
		"twice":                   {visits: []visit{good, later}, end: completed, want: "unexplained duplicates"},
		"twice, and explained":    {visits: []visit{good, later}, end: completed, allowance: allowance{"w1", at, at.Add(time.Second)}},
		"of one that stood still": {visits: []visit{good, later}, end: completed, allowance: allowance{"w2", at, at.Add(5 * time.Second)}},
		"excuse of another":       {visits: []visit{good, later}, end: completed, allowance: allowance{"w2", at, at.Add(time.Second)}, want: "unexplained duplicates"},
		"excuse of another day":   {visits: []visit{good, later}, end: completed, allowance: allowance{"", at.Add(time.Hour), at.Add(2 * time.Hour)}, want: "unexplained duplicates"},
		"excuse of long after":    {visits: []visit{good, later}, end: completed, allowance: allowance{"w1", good.ended.Add(completes + 1), later.began}, want: "unexplained duplicates"},
		"its completion was lost": {visits: []visit{good, later}, end: completed, allowance: allowance{"w1", good.ended.Add(completes), later.began}},
		"hung up":                 {visits: []visit{hungUp, later}, end: completed, want: "unexplained duplicates"},
		"hung up before a fault":  {visits: []visit{hungUp, later}, end: completed, allowance: allowance{"w1", good.ended.Add(completes + 1), later.began}, want: "unexplained duplicates"},
		"hung up as it died":      {visits: []visit{hungUp, later}, end: completed, allowance: allowance{"w1", hungUp.ended, later.began}},
		"never ended":             {visits: []visit{endless, later}, end: completed, want: "unexplained duplicates"},
		"never ended and died":    {visits: []visit{endless, later}, end: completed, allowance: allowance{"w1", later.began.Add(-1), later.began}},
		"early":                   {visits: []visit{early}, end: completed, want: "early"},
		"changed":                 {visits: []visit{changed}, end: completed, want: "changed"},
		"lost":                    {visits: []visit{failed}, want: "lost"},
		"stuck":                   {left: true, want: "stuck"},
		"undead":                  {visits: []visit{good}, end: completed, left: true, want: "undead"},
		"failed without a run":    {end: dead, want: "failed without a run"},
		"failed":                  {visits: []visit{failed}, end: dead, want: "failed"},
		"never run":               {end: completed, want: "completed without a run"},
		"an attempt too many":     {visits: []visit{good}, end: ended{times: 1, status: "COMPLETED", value: "{}", retries: 1}, want: "attempts used without a run"},
		"one attempt that may be": {visits: []visit{good}, end: ended{times: 1, status: "COMPLETED", value: "{}", retries: 1}, unknown: true},
		"two attempts, of which one may be": {visits: []visit{good}, end: ended{times: 1, status: "COMPLETED", value: "{}", retries: 2}, unknown: true,
			want: "attempts used without a run"},
	} {
		r := &rig{unknown: c.unknown, target: &target{visits: map[eventqueue.EventID][]*visit{}}, canFail: map[string]bool{}, allowances: []allowance{c.allowance}}
		for i := range c.visits {
			r.target.visits[7] = append(r.target.visits[7], &c.visits[i])
		}
		var found []string
		find := func(_ *entry, what, _ string, _ ...any) { found = append(found, what) }
		e := &entry{id: 7, label: "l", value: "{}", due: at}
		r.checkRuns(e, find)
		r.checkEnd(e, c.end, c.left, find)
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}
