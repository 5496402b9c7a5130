package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestRunRefusesInvalidConfigAtOnce, before it connects.
func TestRunRefusesInvalidConfigAtOnce(t *testing.T) {
	t.Parallel()
	off := service.Config{DatabaseURL: testenv.DatabaseURL(t), NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true}
	taken := off
	taken.Address = "256.0.0.1:0"
	for want, config := range map[string]service.Config{
		"no handler is registered":   {DatabaseURL: off.DatabaseURL},
		"every part is switched off": off,
		"Address 256.0.0.1:0":        taken,
	} {
		ctx, stop := context.WithCancel(testenv.Context(t))
		core, _ := observer.New(zap.InfoLevel)
		config.Logger = zap.New(core, zap.Hooks(func(line zapcore.Entry) error {
			if strings.HasSuffix(line.Message, " started") { // what should be refused runs: it is to end
				stop()
			}
			return nil
		}))
		s := open(t, config)
		if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want %q", err, want)
		}
		if err := s.Run(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), "called twice") {
			t.Errorf("the second Run = %v", err)
		}
		stop()
	}
}

// TestEndOfAJobEndsTheOtherParts, and only its end does.
func TestEndOfAJobEndsTheOtherParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := func(context.Context) error { return nil }
		endless := func(ctx context.Context) error { <-ctx.Done(); return nil }
		for name, c := range map[string]struct {
			first, other func(context.Context) error
			ends         bool
		}{"the job": {done, endless, true}, "the other": {endless, done, false}} {
			ended := make(chan error, 1)
			go func() { ended <- service.RunTogether(ctx, zap.NewNop(), c.first, c.other) }()
			ends := false
			select {
			case err := <-ended:
				if ends = true; err != nil {
					t.Error(err)
				}
			case <-time.After(time.Hour):
			}
			if ends != c.ends {
				t.Errorf("%s is done: all end: %t", name, ends)
			}
		}
	})
}

// TestEachPartCanBeSwitchedOff, and the end of a worker that is a job ends the others.
func TestEachPartCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]service.Config{
		"worker relay cron pruner": {},
		"relay cron pruner":        {NoWorker: true},
		"worker cron pruner":       {NoRelay: true},
		"worker relay pruner":      {NoCron: true},
		"worker relay cron":        {NoPruner: true},
		"":                         {NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true, Address: "127.0.0.1:0"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zap.InfoLevel)
			config.DatabaseURL, config.Logger = testenv.DatabaseURL(t), zap.New(core)
			config.Worker.MaxEvents = 1
			s := open(t, config)
			ran := collect(t, s)
			ctx, stop := context.WithCancel(testenv.Context(t))
			defer stop()
			if _, err := s.Emit(ctx, eventqueue.NewEvent{Name: "greet", Value: json.RawMessage(`1`)}); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			if config.NoWorker {
				testenv.Eventually(t, "it runs", func() bool {
					return logs.FilterMessageSnippet("started").Len()+logs.FilterMessage("health endpoints listen").Len() > 0
				})
				stop()
			} else {
				expect(t, ran, defaultCanvas+" WORKER/greet/_ 1")
			}
			if err := <-ended; err != nil {
				t.Errorf("Run = %v", err)
			}
			var started []string
			for _, line := range logs.FilterMessageSnippet(" started").All() {
				started = append(started, strings.TrimSuffix(line.Message, " started"))
			}
			if got := strings.Join(started, " "); got != want {
				t.Errorf("started %q", got)
			}
		})
	}
}

// TestAddedPartRunsWithTheOthers runs a part of the program's own: it alone is something to run, it can use the database, and its error
// ends Run.
func TestAddedPartRunsWithTheOthers(t *testing.T) {
	t.Parallel()
	s := open(t, service.Config{DatabaseURL: testenv.DatabaseURL(t), NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true})
	broken := errors.New("the part is broken")
	s.AddPart("other", func(ctx context.Context) error { <-ctx.Done(); return nil })
	s.AddPart("server", func(ctx context.Context) error { return errors.Join(s.Pool().Ping(ctx), broken) })
	if err := s.Run(testenv.Context(t)); err == nil || err.Error() != broken.Error() {
		t.Errorf("Run = %v", err)
	}
}

// TestMissingRelayIsLogged, once, and one that sees one says nothing, whichever
// program runs it.
func TestMissingRelayIsLogged(t *testing.T) {
	t.Parallel()
	database := testenv.DatabaseURL(t)
	looks := func() (*observer.ObservedLogs, func() error) {
		core, logs := observer.New(zap.DebugLevel)
		s := open(t, service.Config{DatabaseURL: database, NoRelay: true, NoCron: true, NoPruner: true, Logger: zap.New(core)})
		s.CheckRelayAfter(0)
		collect(t, s)
		stop := run(t, s)
		testenv.Eventually(t, "it has looked", func() bool { return logs.FilterMessageSnippet("relay runs on this database").Len() > 0 })
		return logs, stop
	}
	logs, stop := looks()
	if n := logs.FilterMessageSnippet("no relay runs on this database").Len(); n != 1 {
		t.Errorf("it says %d times that no relay runs", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	relay := open(t, service.Config{DatabaseURL: database, Name: "relay", NoWorker: true})
	stopRelay := run(t, relay)
	testenv.Eventually(t, "the relay listens", func() (listens bool) {
		if err := relay.Pool().QueryRow(testenv.Context(t), `SELECT EXISTS (
			SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'relay' AND state = 'idle' AND query LIKE '%pg_listening' || '_channels%')`).Scan(&listens); err != nil {
			t.Fatal(err)
		}
		return listens
	})
	logs, stop = looks()
	if n := logs.FilterMessageSnippet("no relay runs on this database").Len(); n != 0 {
		t.Errorf("beside a relay it says %d times that none runs", n)
	}
	if err := errors.Join(stop(), stopRelay()); err != nil {
		t.Error(err)
	}
}
