package main

import (
	"slices"
	"testing"
	"time"
)

func TestPlanFollowsFromItsSeed(t *testing.T) {
	t.Parallel()
	const length = 30 * time.Minute
	plan := makePlan(7, length)
	if !slices.Equal(plan, makePlan(7, length)) {
		t.Error("the same seed gave another plan")
	}
	if slices.Equal(plan, makePlan(8, length)) {
		t.Error("another seed gave the same plan")
	}
	kills := 0
	for _, p := range plan {
		if p.kind.kills() {
			kills++
		}
		if p.at < warmUp || p.at > length {
			t.Errorf("%s at %s", p, p.at)
		}
	}
	if kills < 100 {
		t.Errorf("%d kills in half an hour, want 100", kills)
	}
	if !slices.IsSortedFunc(plan, func(a, b planned) int { return int(a.at - b.at) }) {
		t.Error("the plan is not in order")
	}
}

func TestEveryKindOfFaultIsInAShortPlan(t *testing.T) {
	t.Parallel()
	plan := makePlan(1, 20*time.Second)
	for _, f := range frequencies() {
		if !slices.ContainsFunc(plan, func(p planned) bool { return p.kind == f.kind && slices.Contains(f.targets, p.target) }) {
			t.Errorf("no %s", f.kind)
		}
	}
}

func TestSteadyPlanHasEveryKindInTurnAndEndsNoLongLivedProgram(t *testing.T) {
	t.Parallel()
	plan := steadyPlan(1, time.Hour)
	if len(plan) != 60 || !slices.Equal(plan, steadyPlan(1, time.Hour)) {
		t.Errorf("%d faults in an hour, want 60, and the same for the same seed", len(plan))
	}
	for i, f := range frequencies() {
		if plan[i].kind != f.kind || plan[i].at != time.Duration(i)*steadyEvery+steadyEvery/2 {
			t.Errorf("fault %d is %s at %s", i, plan[i], plan[i].at)
		}
	}
	frozen := false
	for _, p := range steadyPlan(1, 100*time.Hour) {
		long := slices.Contains(longLived(), p.target)
		if long && p.kind.ends() {
			t.Errorf("%s", p)
		}
		frozen = frozen || long && p.kind == freezeWorker
	}
	if !frozen {
		t.Error("no long-lived worker is ever frozen")
	}
}

func TestOnlyLongRunsHaveLongOutages(t *testing.T) {
	t.Parallel()
	for length, want := range map[time.Duration]bool{90 * time.Second: false, longRun: true} {
		longest := map[kind]time.Duration{}
		for _, p := range makePlan(1, length) {
			longest[p.kind] = max(longest[p.kind], p.lasts)
		}
		for kind, lasts := range longest {
			if got := lasts >= outageMin; got != (want && kind.mayBeOutage()) || lasts > outageMax {
				t.Errorf("in a run of %s the longest fault %q takes %s", length, kind, lasts)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-minutes", "0.5", "-seed", "9", "-report", "r.md"}} {
		if _, err := parseOptions(args, t.Output()); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	if o, err := parseOptions([]string{"-steady", "-hours", "0.05"}, t.Output()); err != nil || !o.steady || o.load() != 3*time.Minute {
		t.Errorf("%+v, %s, %v", o, o.load(), err)
	}
}
