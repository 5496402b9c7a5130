package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"eventsv2/test/programs"
)

// uiEvery is how often an event is emitted for whoever looks at the dashboard.
const uiEvery = time.Second

// startUI starts the dashboard and returns its address.
func (f *fleet) startUI(ctx context.Context) (address string, err error) {
	first := make(chan string, 1)
	ui, err := f.Start(programs.Program{Name: "dashboard", Path: filepath.Join(f.dir, programs.Ctl), Args: []string{"ui"},
		Log: filepath.Join(f.dir, "dashboard.log"), Env: programs.Environment(f.env),
		Read: func(r io.Reader) {
			lines := bufio.NewReader(r)
			line, err := lines.ReadString('\n')
			if err == nil {
				first <- strings.TrimSpace(line)
			}
			_, _ = io.Copy(io.Discard, lines) // it says nothing else
		}})
	if err != nil {
		return "", err
	}
	select {
	case address = <-first:
		return address, nil
	case <-ui.Exited:
		return "", ui.Failure()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// goOn emits an event a second, so that there is something to see, until ctx ends, and returns why it ended.
func (s *stage) goOn(ctx context.Context) error {
	s.printer.say("the dashboard is at %s", s.address)
	s.printer.say("an event is emitted every second, for you to watch; Ctrl-C stops everything and removes its data")
	ticker := time.NewTicker(uiEvery)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		at := i % len(s.in.events)
		if _, err := s.emitter.emit(ctx, s.in.events[at:at+1]); err != nil {
			return fmt.Errorf("emit for the dashboard: %w", err)
		}
	}
}
