package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// TestOutcomesAreLoggedAtTheirLevels: an event that is FAILED is an error, a run that is tried again a
// warning, and a run that succeeds no line at all, unless somebody wants one for each.
func TestOutcomesAreLoggedAtTheirLevels(t *testing.T) {
	t.Parallel()
	no := errors.New("no luck")
	for name, c := range map[string]struct {
		retries  int
		lost     bool // the fence refuses the completion
		handler  func() error
		level    zapcore.Level
		all      zapcore.Level // with LogEvents
		mentions string
	}{
		"completed":         {0, false, func() error { return nil }, zap.DebugLevel, zap.InfoLevel, "event run ended"},
		"snoozed":           {0, false, func() error { return eventqueue.Snooze(time.Hour) }, zap.DebugLevel, zap.InfoLevel, "event run ended"},
		"failed once":       {0, false, func() error { return no }, zap.WarnLevel, zap.WarnLevel, "event run failed; it is tried again"},
		"failed too often":  {2, false, func() error { return no }, zap.ErrorLevel, zap.ErrorLevel, "event run failed, and the event is FAILED"},
		"failed for good":   {0, false, func() error { return eventqueue.Permanent(no) }, zap.ErrorLevel, zap.ErrorLevel, "event run failed, and the event is FAILED"},
		"without its claim": {0, true, func() error { return nil }, zap.WarnLevel, zap.WarnLevel, "event run ended, but its end could not be written; the event may run again"},
	} {
		for _, all := range []bool{false, true} {
			inVirtualTime(t, func(s *script) {
				core, logs := observer.New(zap.DebugLevel)
				s.lostEnds = c.lost
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return c.handler() })
				defer s.start(worker.Config{Logger: zap.New(core), LogEvents: all})()
				f := s.claimed(1)
				f.Event.Retries = c.retries
				s.notify(f)
				rig.Pass(time.Second)
				want := c.level
				if all {
					want = c.all
				}
				lines := logs.Filter(func(line observer.LoggedEntry) bool {
					return line.ContextMap()["duration"] != nil && line.Message != "event claimed"
				}).All()
				if len(lines) != 1 || lines[0].Level != want || lines[0].Message != c.mentions || lines[0].ContextMap()["event_id"] != "1" {
					s.t.Errorf("%s (LogEvents %v): %v, want one line at %s: %s", name, all, lines, want, c.mentions)
				}
				if remedy, has := lines[0].ContextMap()["remedy"]; has != (want == zap.ErrorLevel) || has && remedy != "fix the cause, then: eventctl retry 1" {
					s.t.Errorf("%s (LogEvents %v): the line says what to do: %v", name, all, remedy)
				}
			})
		}
	}
}

// TestLinesOfARunNameTheEmittersTrace.
func TestLinesOfARunNameTheEmittersTrace(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		core, logs := observer.New(zap.WarnLevel)
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		defer s.start(worker.Config{Logger: zap.New(core)})()
		s.found[1] = *s.claimed(1)
		s.pulls <- []eventqueue.Delivery{{Notification: eventqueue.Notification{Event: 1, Canvas: rig.Canvas, Traceparent: parent}, AckID: "1"}}
		rig.Pass(time.Second)
		if lines := logs.All(); len(lines) != 1 || lines[0].ContextMap()["traceparent"] != parent {
			s.t.Errorf("the log says %v", lines)
		}
	})
}

// TestMinuteIsSummarized, if something has run in it, and what ran after the last one at the end.
func TestMinuteIsSummarized(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		core, logs := observer.New(zap.InfoLevel)
		s.handle(eventqueue.Policy{}, func(_ context.Context, run *eventqueue.Run) error {
			switch run.ID {
			case 1, 5:
				return errors.New("no luck")
			case 2:
				return eventqueue.Permanent(errors.New("never"))
			default:
				return nil
			}
		})
		stop := s.start(worker.Config{Logger: zap.New(core)})
		expect := func(want ...map[string]any) {
			s.t.Helper()
			var got []map[string]any
			for _, line := range logs.FilterMessage("runs that have ended").All() {
				fields := line.ContextMap()
				delete(fields, "duration")
				got = append(got, fields)
			}
			if difference := cmp.Diff(want, got); difference != "" {
				s.t.Errorf("(-want +got)\n%s", difference)
			}
			logs.TakeAll()
		}
		rig.Pass(time.Hour)
		expect()
		last := s.claimed(5)
		last.Event.Retries = 1000 // more than it may have
		s.notify(s.claimed(1), s.claimed(2), s.claimed(3), last)
		rig.Pass(time.Minute)
		expect(map[string]any{"run": int64(4), "failed": int64(2), "retried": int64(1), "running": int64(0), "slots": int64(500), "hung": int64(0), "oldest": time.Duration(0)})
		rig.Pass(time.Hour)
		expect()
		s.notify(s.claimed(4))
		rig.Pass(time.Second)
		stop()
		expect(map[string]any{"run": int64(1), "failed": int64(0), "retried": int64(0), "running": int64(0), "slots": int64(500), "hung": int64(0), "oldest": time.Duration(0)})
	})
}
