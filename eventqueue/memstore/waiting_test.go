package memstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/operate"
)

// TestARelayInMemorySaysWhatDoesNotRun: a line a minute while something is due, and one of the handler of which nothing has run,
// which is neither paused nor one of which something has ended.
func TestARelayInMemorySaysWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		named := func(name string) eventqueue.Scope {
			return eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: name}
		}
		for _, name := range []string{"paused", "ends", "stands"} {
			e := event(`1`)
			e.Name = name
			if _, err := store.Insert(t.Context(), nil, []eventqueue.NewEvent{e}, eventqueue.NotifyModeLater); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second) // so that another is older
		}
		if _, err := store.AddRule(t.Context(), operate.RuleOf(machine.PauseRule, named("paused"))); err != nil {
			t.Fatal(err)
		}
		core, logs := observer.New(zap.InfoLevel)
		relay, err := maintenance.NewRelay(store, memnotify.New(memnotify.Config{}), maintenance.RelayConfig{Logger: zap.New(core), Jitter: func(time.Duration) time.Duration { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- relay.Run(ctx) }()
		for range 4 {
			if _, err := store.AddMinutes(t.Context(), []minutes.Counts{{Scope: named("ends"), Completed: 1}}); err != nil {
				t.Fatal(err)
			}
			<-time.After(30 * time.Second)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var lines []string
		for _, entry := range logs.All() {
			fields := entry.ContextMap()
			switch entry.Message {
			case "runs of the last minute":
				lines = append(lines, fmt.Sprintf("run %v, pending %v, held %v", fields["run"], fields["pending"], fields["held"]))
			case "nothing of a handler has run for a minute although something is due":
				lines = append(lines, fmt.Sprintf("%v %v of %v", fields["handler"], fields["event_id"], fields["handlers"]))
			}
		}
		for _, want := range []string{"run 0, pending 3, held 1", "run 2, pending 3, held 1", "WORKER/stands/_ 3 of 1"} {
			if !slices.Contains(lines, want) {
				t.Errorf("the log lacks %q: %q", want, lines)
			}
		}
		if len(lines) > 4 {
			t.Errorf("the log has %q", lines)
		}
	})
}
