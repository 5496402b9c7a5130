package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/batch"
)

var errBad = errors.New("bad")

// calls are the batches that a function was called for.
type calls struct {
	mu  sync.Mutex
	all []string
}

func (c *calls) add(events []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events = slices.Clone(events)
	slices.Sort(events)
	c.all = append(c.all, fmt.Sprint(events))
}

func (c *calls) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.all)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// begin runs events together, in goroutines, and returns their errors once all have returned.
func begin(t *testing.T, c *batch.Collector[int], ctx func(event int) context.Context, events ...int) func() map[int]error {
	t.Helper()
	errs, mu, all := map[int]error{}, sync.Mutex{}, sync.WaitGroup{}
	for _, event := range events {
		all.Go(func() {
			err := errors.New("the goroutine ended")
			defer func() { mu.Lock(); defer mu.Unlock(); errs[event] = err }()
			err = c.Run(ctx(event), event, &eventqueue.Run{Event: eventqueue.Event{ID: eventqueue.EventID(event)}})
		})
		synctest.Wait() // in this order
	}
	return func() map[int]error { all.Wait(); return errs }
}

func background(int) context.Context { return context.Background() }

func collector(t *testing.T, size int, f batch.Func[int]) *batch.Collector[int] {
	t.Helper()
	c, err := batch.New(size, time.Second, f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBatchIsRunWhenItIsFullOrHasWaited, and each event has the error at its index.
func TestBatchIsRunWhenItIsFullOrHasWaited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size   int
		events []int
		want   string
		waits  time.Duration
	}{
		{3, []int{1, 2, 3}, "[1 2 3]", 0},
		{3, []int{1, 2}, "[1 2]", time.Second},
		{3, []int{1, 2, 3, 4}, "[1 2 3] [4]", time.Second},
		{3, []int{1, 2, 3, 4, 5, 6}, "[1 2 3] [4 5 6]", 0},
		{1, []int{1, 2}, "[1] [2]", 0},
	} {
		t.Run(fmt.Sprintf("%d of %d", len(c.events), c.size), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				called := &calls{}
				began := time.Now()
				errs := begin(t, collector(t, c.size, func(_ context.Context, events []int, runs []*eventqueue.Run) []error {
					called.add(events)
					var errs []error
					for i, event := range events {
						if runs[i].ID != eventqueue.EventID(event) {
							t.Errorf("event %d has the run of %s", event, runs[i].ID)
						}
						if event%2 == 0 {
							errs = append(errs, fmt.Errorf("%d: %w", event, errBad))
						} else {
							errs = append(errs, nil)
						}
					}
					return errs
				}), background, c.events...)()
				if called.String() != c.want || time.Since(began) != c.waits {
					t.Errorf("called with %s after %s, want %s after %s", called, time.Since(began), c.want, c.waits)
				}
				for _, event := range c.events {
					if err := errs[event]; (err != nil) != (event%2 == 0) || err != nil && err.Error() != fmt.Sprintf("%d: bad", event) {
						t.Errorf("event %d: %v", event, err)
					}
				}
			})
		})
	}
}

// lost is what the errors of suspects are.
type lost interface{ Lost() bool }

// TestEventsOfABatchThatDiesAreSuspects, however it dies: which of them is the cause shows when each runs alone.
func TestEventsOfABatchThatDiesAreSuspects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dies func()
		want string
	}{
		"panic":  {func() { panic("poison") }, "the handler panicked: poison"},
		"goexit": {runtime.Goexit, "ended its goroutine without returning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				called := &calls{}
				errs := begin(t, collector(t, 4, func(_ context.Context, events []int, _ []*eventqueue.Run) []error {
					called.add(events)
					if slices.Contains(events, 3) {
						c.dies()
					}
					return nil
				}), background, 1, 2, 3, 4)()
				if called.String() != "[1 2 3 4]" || len(errs) != 4 {
					t.Errorf("called with %s, %d errors", called, len(errs))
				}
				for event, err := range errs {
					if suspect := lost(nil); !errors.As(err, &suspect) || !suspect.Lost() || !strings.Contains(err.Error(), c.want) {
						t.Errorf("event %d: %v", event, err)
					}
				}
				single := collector(t, 4, func(context.Context, []int, []*eventqueue.Run) []error {
					c.dies()
					return nil
				})
				err := single.Run(t.Context(), 3, &eventqueue.Run{Suspect: true})
				if suspect := lost(nil); err == nil || errors.As(err, &suspect) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("alone: %v", err)
				}
			})
		})
	}
}

func TestErrorsThatFitNoEventFailAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 3} {
			errs := begin(t, collector(t, 2, func(context.Context, []int, []*eventqueue.Run) []error { return make([]error, n) }), background, 1, 2)()
			for event, err := range errs {
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("returned %d errors for 2 events", n)) {
					t.Errorf("event %d: %v", event, err)
				}
			}
		}
	})
}

// TestRunThatEndsLeavesItsBatch while that waits for more. From one that has begun, only a run that ends alone returns; a time-out, and the stop
// of the worker, end the batch.
func TestRunThatEndsLeavesItsBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends error // of run 3, after a minute
		want time.Duration
		as   error
	}{
		"the worker stops":   {eventqueue.ErrStopping, 2 * time.Minute, context.Canceled},
		"all have ended":     {eventqueue.ErrLockLost, 2 * time.Minute, context.Canceled},
		"the first time-out": {nil, 11 * time.Minute, context.DeadlineExceeded}, // of run 1
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				called, began := &calls{}, time.Now()
				ctxs, cancels := map[int]context.Context{}, map[int]context.CancelCauseFunc{}
				for event := range 4 {
					timeout, free := context.WithTimeoutCause(context.Background(), time.Duration(10+event)*time.Minute, eventqueue.ErrTimeout)
					defer free()
					ctxs[event], cancels[event] = context.WithCancelCause(timeout)
				}
				of := func(event int) context.Context { return ctxs[event] }
				var ended time.Duration
				var as error
				f := collector(t, 3, func(ctx context.Context, events []int, _ []*eventqueue.Run) []error {
					called.add(events)
					<-ctx.Done()
					ended, as = time.Since(began), ctx.Err()
					return slices.Repeat([]error{context.Cause(ctx)}, len(events))
				})
				early := begin(t, f, of, 0)
				cancels[0](eventqueue.ErrCancelled)
				if err := early()[0]; !errors.Is(err, eventqueue.ErrCancelled) {
					t.Errorf("the run that has left: %v", err)
				}
				first, second, third := begin(t, f, of, 1), begin(t, f, of, 2), begin(t, f, of, 3)
				<-time.After(time.Minute)
				cancels[1](eventqueue.ErrCancelled)
				cancels[2](eventqueue.ErrLockLost)
				if err := first()[1]; !errors.Is(err, eventqueue.ErrCancelled) || time.Since(began) != time.Minute {
					t.Errorf("the cancelled run has returned %v after %s", err, time.Since(began))
				}
				if err := second()[2]; !errors.Is(err, eventqueue.ErrLockLost) || time.Since(began) != time.Minute {
					t.Errorf("the run without a lock has returned %v after %s", err, time.Since(began))
				}
				<-time.After(time.Minute)
				if c.ends != nil {
					cancels[3](c.ends)
				}
				third()
				synctest.Wait()
				if called.String() != "[1 2 3]" || ended != c.want || !errors.Is(as, c.as) {
					t.Errorf("called with %s, ended after %s as %v, want %s and %v", called, ended, as, c.want, c.as)
				}
			})
		})
	}
}

// TestWaitTakesHalfOfARunAtMost: the rest is for the batch.
func TestWaitTakesHalfOfARunAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		called, began := &calls{}, time.Now()
		c := collector(t, 3, func(_ context.Context, events []int, _ []*eventqueue.Run) []error {
			called.add(events)
			return nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond)
		defer cancel()
		for event, err := range begin(t, c, func(int) context.Context { return ctx }, 1, 2)() {
			if err != nil {
				t.Errorf("event %d: %v", event, err)
			}
		}
		if called.String() != "[1 2]" || time.Since(began) != 450*time.Millisecond {
			t.Errorf("called with %s after %s", called, time.Since(began))
		}
	})
}

func TestSuspectIsRunAloneAndAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		called := &calls{}
		c := collector(t, 3, func(_ context.Context, events []int, _ []*eventqueue.Run) []error {
			called.add(events)
			return nil
		})
		others := begin(t, c, background, 1, 2)
		if err := c.Run(context.Background(), 7, &eventqueue.Run{Suspect: true}); err != nil || called.String() != "[7]" {
			t.Errorf("%v, called with %s", err, called)
		}
		others()
		if called.String() != "[1 2] [7]" {
			t.Errorf("called with %s", called)
		}
	})
}

func TestNewRefusesBatchesThatCannotBe(t *testing.T) {
	t.Parallel()
	f := func(context.Context, []*eventqueue.Run) []error { return nil }
	for _, c := range []struct {
		size int
		wait time.Duration
		f    func(context.Context, []*eventqueue.Run) []error
		want string
	}{
		{0, 0, f, "the size of a batch is 0: it is from 1 to 10000"},
		{batch.MaxSize + 1, 0, f, "the size of a batch is 10001"},
		{1, -1, f, "the wait for a batch is -1ns: it is from 0 to 1m0s"},
		{1, batch.MaxWait + 1, f, "the wait for a batch is 1m0.000000001s"},
		{1, 0, nil, "the function of the batches is nil"},
		{batch.MaxSize, batch.MaxWait, f, ""},
	} {
		if _, err := batch.Handler(c.size, c.wait, c.f); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d, %s: %v, want %q", c.size, c.wait, err, c.want)
		}
	}
}
