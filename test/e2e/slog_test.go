package e2e_test

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"eventsv2/service"
	"eventsv2/test/testenv"
)

// slogProgram is worker or cron in this process, with a logger of log/slog.
type slogProgram struct {
	*lines
	t       *testing.T
	program string
	stop    context.CancelFunc
	ended   chan error
}

func (p *slogProgram) name() string { return p.program }
func (p *slogProgram) text() string { return p.String() }

func (p *slogProgram) await(text string) {
	p.t.Helper()
	p.lines.await(p.t, text)
}

func (p *slogProgram) terminate() (status int) {
	p.t.Helper()
	p.stop()
	select {
	case err := <-p.ended:
		if err == nil {
			return 0
		}
		p.t.Errorf("%s: %v", p.program, err)
	case <-testenv.Context(p.t).Done():
		p.t.Errorf("%s does not end", p.program)
	}
	return 1
}

// asGoogle has a slog.JSONHandler write the keys and values of Google's logs, which the programs write.
func asGoogle(_ []string, a slog.Attr) slog.Attr {
	switch {
	case a.Key == slog.MessageKey:
		a.Key = "message"
	case a.Key == slog.LevelKey && a.Value.Any() == slog.LevelWarn:
		return slog.String("severity", "WARNING")
	case a.Key == slog.LevelKey:
		a.Key = "severity"
	case a.Value.Kind() == slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
	}
	return a
}

// startSlog runs worker or cron in this process, as the program of that name does, but for its logger.
func (r *rig) startSlog(name string, change map[string]string) *slogProgram {
	r.t.Helper()
	environment := maps.Clone(r.environment)
	maps.Copy(environment, change)
	config, err := service.FromEnvironment(environment)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &slogProgram{newLines(), r.t, name, stop, make(chan error, 1)}
	config.Logger, config.SlogLogger = nil, slog.New(slog.NewJSONHandler(p.lines, &slog.HandlerOptions{ReplaceAttr: asGoogle}))
	if name == "worker" {
		workerOnly(&config)
	} else {
		config.NoWorker, config.HandlersFile = true, ""
	}
	s, err := service.Open(testenv.Context(r.t), config)
	if err != nil {
		stop()
		r.t.Fatal(err)
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		p.ended <- s.Run(ctx)
	}()
	r.t.Cleanup(func() {
		stop()
		<-finished
		_ = s.Close()
		if r.t.Failed() {
			r.t.Logf("log of %s:\n%s", name, p.text())
		}
	})
	return p
}
