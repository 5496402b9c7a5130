package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

type middleware = []func(eventqueue.Handler) eventqueue.Handler

// TestMiddlewareStandsAroundHandlers, the first one outermost, and is asked once for each handler.
func TestMiddlewareStandsAroundHandlers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		var calls []string
		asked := 0
		note := func(name string) func(eventqueue.Handler) eventqueue.Handler {
			return func(next eventqueue.Handler) eventqueue.Handler {
				asked++
				return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
					calls = append(calls, name+" begins")
					err := next.Handle(ctx, run)
					calls = append(calls, name+" ends")
					return err
				})
			}
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { calls = append(calls, "handler"); return nil })
		if err := s.handlers.RegisterOn(eventqueue.CanvasID{9}, rig.Key, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil }), eventqueue.Policy{}); err != nil {
			s.t.Fatal(err)
		}
		defer s.start(worker.Config{Middleware: middleware{note("a"), note("b")}})()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		s.notify(s.claimed(2))
		rig.Pass(time.Second)
		run := []string{"a begins", "b begins", "handler", "b ends", "a ends"}
		if want := slices.Concat(run, run); !slices.Equal(calls, want) || asked != 4 {
			s.t.Errorf("the calls are %v, and handlers were made %d times", calls, asked)
		}
	})
}

// TestMiddlewareThatMakesNoHandlerIsRefused.
func TestMiddlewareThatMakesNoHandlerIsRefused(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
	same := func(next eventqueue.Handler) eventqueue.Handler { return next }
	none := func(eventqueue.Handler) eventqueue.Handler { return nil }
	queue, err := eventqueue.New(s, silent{}, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]middleware{
		"Middleware[1] is nil: leave it out":                         {same, nil},
		"handler WORKER/greet/_: Middleware[0] has returned nil for": {none, same},
	} {
		if _, err := worker.New(queue, s, s, s.handlers, worker.Config{Middleware: m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}

// failures collects what OnError is called with.
type failures struct {
	mu  sync.Mutex
	all []worker.FailedRun
}

func (f *failures) add(_ context.Context, failed worker.FailedRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, failed)
}

func (f *failures) take() (all []worker.FailedRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, f.all = f.all, nil
	return all
}

// TestOnErrorIsCalledOnceForEachFailedAttempt, says whether it was the last, and has the stack of a panic; what is
// no failed attempt has no call.
func TestOnErrorIsCalledOnceForEachFailedAttempt(t *testing.T) {
	t.Parallel()
	no := errors.New("no luck")
	for name, c := range map[string]struct {
		retries  int
		lost     bool // with a worker that died
		lostEnds bool // the fence refuses the completion
		limited  bool // by a limit without room
		handler  func(ctx context.Context) error
		want     []string
		stack    bool
	}{
		"completed":            {handler: func(context.Context) error { return nil }},
		"snoozed":              {handler: func(context.Context) error { return eventqueue.Snooze(time.Hour) }},
		"without its claim":    {lostEnds: true, handler: func(context.Context) error { return no }},
		"failed once":          {handler: func(context.Context) error { return no }, want: []string{"5 false 1s 0 no luck"}},
		"failed too often":     {retries: 2, handler: func(context.Context) error { return no }, want: []string{"5 true 0s 2 no luck"}},
		"failed for good":      {handler: func(context.Context) error { return eventqueue.Permanent(no) }, want: []string{"5 true 0s 0 no luck"}},
		"panicked":             {handler: func(context.Context) error { panic("boom") }, want: []string{"5 false 1s 0 the handler panicked: boom"}, stack: true},
		"panicked in the end":  {retries: 2, handler: func(context.Context) error { panic("boom") }, want: []string{"5 true 0s 2 the handler panicked: boom"}, stack: true},
		"took too long":        {handler: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, want: []string{"5 false 1s 0 the handler's timeout has passed"}},
		"lost, then completed": {retries: 1, lost: true, handler: func(context.Context) error { return nil }, want: []string{"4 false 0s 0 the event died alone"}},
		"lost, then failed":    {retries: 1, lost: true, handler: func(context.Context) error { return no }, want: []string{"4 false 0s 0 the event died alone", "5 false 1s 1 no luck"}},
		"lost in the end":      {retries: 3, lost: true, handler: func(context.Context) error { return nil }, want: []string{"5 true 0s 3 the event died alone"}},
		"put off":              {limited: true},
		"lost, then put off":   {retries: 1, lost: true, limited: true, want: []string{"4 false 1s 0 the event died alone"}},
		"lost, then taken":     {retries: 1, lost: true, limited: true, lostEnds: true}, // by another worker, which tells of it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.lostEnds = c.lostEnds
				s.handle(eventqueue.Policy{}, func(ctx context.Context, _ *eventqueue.Run) error { return c.handler(ctx) })
				var failed failures
				defer s.startOn(fullLimit{s}, worker.Config{OnError: failed.add, Jitter: func(time.Duration) time.Duration { return 0 }})()
				f := s.claimed(1)
				f.Event.Retries, f.Attempt, f.LostRun, f.Limited = c.retries, 5, c.lost, c.limited
				s.notify(f)
				rig.Pass(2 * time.Minute)
				all := failed.take()
				slices.SortFunc(all, func(a, b worker.FailedRun) int { return int(a.Attempt - b.Attempt) })
				if len(all) != len(c.want) {
					s.t.Fatalf("got %+v, want %q", all, c.want)
				}
				for i, got := range all {
					text := fmt.Sprint(got.Attempt, got.Last, got.RetryIn, got.Event.Retries, got.Err)
					if want := c.want[i]; got.Event.ID != 1 || !strings.HasPrefix(text, want) {
						s.t.Errorf("got %s, want %s", text, want)
					}
					if has := strings.Contains(string(got.Stack), "hooks_test.go"); has != c.stack || has != (got.Stack != nil) {
						s.t.Errorf("the stack is %s", got.Stack)
					}
				}
			})
		})
	}
}

// fullLimit is a script with a rate limit that has no room.
type fullLimit struct{ *script }

func (fullLimit) TakeRate(_ context.Context, asks []worker.RateAsk) ([]ratelimit.Answer, error) {
	answers := make([]ratelimit.Answer, len(asks))
	for i := range answers {
		answers[i].Busy = true
	}
	return answers, nil
}

// TestOnErrorIsToldOnceOfALostRunThatALimitPutsOff: the claim that has found it does not run, and the next one does not know of it.
func TestOnErrorIsToldOnceOfALostRunThatALimitPutsOff(t *testing.T) {
	t.Parallel()
	r := newClockRig(t)
	r.Handle(done, rig.Quick())
	r.limit(operate.RateLimit{Scope: handlerScope(), PerMinute: 1})
	r.Exec(`UPDATE rate_counters SET minute_at = date_bin('1 minute', clock_timestamp(), 'epoch'), minute_count = 1`)
	r.emitTo(rig.Key.Name, 1)
	r.Exec(`UPDATE events_v2 SET attempts = 1, begun = true, suspect = 1, locked_at = clock_timestamp() - interval '2 minutes'`)
	var failed failures
	stop := r.Start(worker.Config{OnError: failed.add})
	r.Outcomes.Await(t, machine.OverLimit, 1)
	r.nextMinute()
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	stop() // which waits for the calls
	all := failed.take()
	if len(all) != 1 || all[0].Attempt != 1 || all[0].Event.Retries != 0 || all[0].Last || all[0].RetryIn < time.Second || !strings.Contains(all[0].Err.Error(), "died alone") {
		t.Errorf("the calls are %+v; %v", all, r.Outcomes.Summary())
	}
}

// TestOnErrorDelaysNothing: events are claimed, run and completed while no call returns, beyond a bound calls are left
// out with a warning, and the worker stops all the same.
func TestOnErrorDelaysNothing(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		core, logs := observer.New(zap.WarnLevel)
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		called, ended := 0, make(chan struct{})
		var mu sync.Mutex
		stop := s.start(worker.Config{Concurrency: 1, Logger: zap.New(core), OnError: func(context.Context, worker.FailedRun) {
			mu.Lock()
			called++
			mu.Unlock()
			<-ended
		}})
		const events, most = 105, 100
		for id := range eventqueue.EventID(events) {
			s.notify(s.claimed(id + 1))
			rig.Pass(time.Second)
		}
		if got := s.state(); len(got.completions) != events || called != most {
			s.t.Errorf("%d ends and %d calls, want %d and %d", len(got.completions), called, events, most)
		}
		if n := logs.FilterMessageSnippet("OnError is not called").Len(); n != events-most {
			s.t.Errorf("%d calls that were left out are in the log", n)
		}
		began := time.Now()
		stop()
		if took := time.Since(began); took > 10*time.Second || logs.FilterMessageSnippet("OnError has not returned").Len() != 1 {
			s.t.Errorf("the stop took %s; the log says %v", took, logs.All()[events:])
		}
		close(ended)
	})
}

// TestStopWaitsForOnError that ends soon.
func TestStopWaitsForOnError(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		reported := false
		stop := s.start(worker.Config{OnError: func(context.Context, worker.FailedRun) {
			time.Sleep(time.Second)
			reported = true
		}})
		s.notify(s.claimed(1))
		synctest.Wait()
		stop()
		if !reported {
			s.t.Error("the worker has stopped before the failure was reported")
		}
	})
}

// TestContextOfOnError ends, has the trace of the event, and makes its emits children.
func TestContextOfOnError(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		took := make(chan time.Duration, 1)
		defer s.start(worker.Config{OnError: func(ctx context.Context, failed worker.FailedRun) {
			if parent := eventqueue.ParentOf(ctx); parent == nil || parent.ID != failed.Event.ID {
				s.t.Errorf("the parent is %+v", parent)
			}
			began := time.Now()
			<-ctx.Done()
			took <- time.Since(began)
		}})()
		s.notify(s.claimed(1))
		rig.Pass(time.Minute)
		if got := <-took; got != 10*time.Second {
			s.t.Errorf("it ends after %s", got)
		}
	})
}

// TestPanicOfOnErrorIsLogged, and nothing else happens.
func TestPanicOfOnErrorIsLogged(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		core, logs := observer.New(zapcore.ErrorLevel)
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		defer s.start(worker.Config{Logger: zap.New(core), OnError: func(context.Context, worker.FailedRun) { panic("the reporter") }})()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		lines := logs.FilterMessage("OnError panicked").All()
		if len(lines) != 1 || lines[0].ContextMap()["panic"] != "the reporter" || !strings.Contains(fmt.Sprint(lines[0].ContextMap()["stack"]), "hooks_test.go") {
			s.t.Errorf("the log says %v", logs.All())
		}
		if got := s.state(); len(got.completions) != 1 {
			s.t.Errorf("%+v", got)
		}
	})
}
