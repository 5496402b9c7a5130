package machine_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"eventsv2/eventqueue/machine"
)

var update = flag.Bool("update", false, "write the golden files anew")

// documented are the arrows of the documented diagram, in its own order.
var documented = []string{
	"Queue|Receive notification|EventLoad",
	"EventLoad|EventPresent|PauseCheck",
	"PauseCheck|PauseNone|DelayCheck",
	"DelayCheck|DelayNone|LockCheck",
	"LockCheck|LockNone|LockClaim",
	"LockCheck|LockExpired|LockClaim",
	"LockClaim|Claimed|Process",
	"Process|ExecutesToCompletion|Delete",
	"Delete||End",
	"EventLoad|EventMissing|End",
	"LockCheck|IsLocked|Queue",
	"DelayCheck|DelayNotYet|Queue",
	"PauseCheck|Paused|End",
	"PauseCheck|Blocked|End",
	"LockClaim|LockClaimFailed|Queue",
	"Process|Exception|RetryCheck",
	"RetryCheck|RetryAllowed|Queue",
	"RetryCheck|RetryTooMany|Delete",
	"RetryCheck|Exception|Queue",
}

func TestEveryDocumentedArrowIsInTheTable(t *testing.T) {
	t.Parallel()
	want := make(map[string]bool, len(documented))
	for _, arrow := range documented {
		want[arrow] = true
	}
	for _, a := range machine.Arrows() {
		name := strings.Join([]string{string(a.From), string(a.Label), string(a.To)}, "|")
		switch {
		case a.Documented() && !want[name]:
			t.Errorf("%s says that it is documented, and is not", name)
		case !a.Documented() && want[name]:
			t.Errorf("%s is documented and gives a reason of its own", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

func TestNoTwoArrowsLeaveAStateUnderOneLabel(t *testing.T) {
	t.Parallel()
	for _, a := range machine.Arrows() {
		if first := machine.Follow(a.From, a.Label); first != a {
			t.Errorf("%s has two arrows |%s|, to %s and to %s", a.From, a.Label, first.To, a.To)
		}
	}
}

func TestPictureIsDrawnFromTheTable(t *testing.T) {
	t.Parallel()
	const page = "../../docs/state-machine.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBetween(t, string(text), "```mermaid\n", "```\n", machine.Mermaid())
	want = replaceBetween(t, want, "<!-- additions -->\n", "<!-- end -->\n", machine.Additions())
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s is not what the table of arrows says; run: go test ./eventqueue/machine -update", page)
	}
}

func replaceBetween(t *testing.T, text, begin, end, middle string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("the page lacks %q or %q", begin, end)
	}
	return before + begin + middle + end + after
}

func TestDecideClaimAnswersEachFactWithItsLabel(t *testing.T) {
	t.Parallel()
	present := machine.Facts{Present: true, HandlerKnown: true}
	with := func(change func(*machine.Facts)) machine.Facts { f := present; change(&f); return f }
	for _, c := range []struct {
		name  string
		facts machine.Facts
		state machine.State
		label machine.Label
	}{
		{"gone", machine.Facts{}, machine.End, machine.EventMissing},
		{"paused", with(func(f *machine.Facts) { f.Rule = machine.PauseRule }), machine.End, machine.Paused},
		{"blocked", with(func(f *machine.Facts) { f.Rule = machine.BlockRule }), machine.End, machine.Blocked},
		{"paused before anything else", with(func(f *machine.Facts) {
			f.Rule, f.Delay, f.Lock, f.HandlerKnown = machine.PauseRule, 1, machine.LockHeld, false
		}), machine.End, machine.Paused},
		{"early by a nanosecond", with(func(f *machine.Facts) { f.Delay = 1 }), machine.Queue, machine.DelayNotYet},
		{"due now", with(func(f *machine.Facts) { f.Claimed = true }), machine.Process, machine.Claimed},
		{"locked", with(func(f *machine.Facts) { f.Lock = machine.LockHeld }), machine.Queue, machine.IsLocked},
		{"expired and taken over", with(func(f *machine.Facts) { f.Lock, f.Claimed = machine.LockStale, true }), machine.Process, machine.Claimed},
		{"free, but another was faster", present, machine.Queue, machine.LockClaimFailed},
		{"expired, but another was faster", with(func(f *machine.Facts) { f.Lock = machine.LockStale }), machine.Queue, machine.LockClaimFailed},
		{"not its turn", with(func(f *machine.Facts) { f.Waits = true }), machine.End, machine.NotItsTurn},
		{"not its turn, and no such handler here", with(func(f *machine.Facts) { f.Waits, f.HandlerKnown = true, false }), machine.Queue, machine.HandlerUnknown},
		{"no such handler here", with(func(f *machine.Facts) { f.HandlerKnown = false }), machine.Queue, machine.HandlerUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state, label := machine.DecideClaim(c.facts)
			if state != c.state || label != c.label {
				t.Errorf("got %s by %s, want %s by %s", state, label, c.state, c.label)
			}
		})
	}
}

func TestDecideRunAnswersEachOutcomeWithItsLabel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		run   machine.Run
		state machine.State
		label machine.Label
	}{
		{machine.Run{Verdict: machine.ExecutesToCompletion}, machine.Delete, machine.ExecutesToCompletion},
		{machine.Run{Verdict: machine.FailedForGood, MaxRetries: 9}, machine.Delete, machine.FailedForGood},
		{machine.Run{Verdict: machine.Snoozed}, machine.Queue, machine.Snoozed},
		{machine.Run{Verdict: machine.Released}, machine.Queue, machine.Released},
		{machine.Run{Verdict: machine.Exception, Retries: 1, MaxRetries: 2}, machine.Queue, machine.RetryAllowed},
		{machine.Run{Verdict: machine.Exception, Retries: 2, MaxRetries: 2}, machine.Delete, machine.RetryTooMany},
		{machine.Run{Verdict: machine.Exception, Retries: 3, MaxRetries: 2}, machine.Delete, machine.RetryTooMany},
		{machine.Run{Verdict: machine.Exception}, machine.Delete, machine.RetryTooMany},
	} {
		state, label := machine.DecideRun(c.run)
		if state != c.state || label != c.label {
			t.Errorf("%+v: got %s by %s, want %s by %s", c.run, state, label, c.state, c.label)
		}
	}
}

func TestArrowThatIsNotInTheTablePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	machine.Follow(machine.EventLoad, machine.Paused)
}

func TestEveryStateIsReachedAndLeft(t *testing.T) {
	t.Parallel()
	reached := map[machine.State]bool{machine.Queue: true}
	left := map[machine.State]bool{machine.End: true}
	for _, a := range machine.Arrows() {
		reached[a.To], left[a.From] = true, true
	}
	for s := range reached {
		if !left[s] {
			t.Errorf("no arrow leaves %s", s)
		}
	}
	for s := range left {
		if !reached[s] {
			t.Errorf("no arrow leads to %s", s)
		}
	}
}
