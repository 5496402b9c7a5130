package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
)

// progressInterval is the least time between two writes of progress.
const progressInterval = 2 * time.Second

const (
	// maxResultBytes is how long the JSON of a result may be, before it is encrypted.
	maxResultBytes = 64 << 10
	// maxNoteBytes is how long the note of a Progress may be.
	maxNoteBytes = 200
)

// SetResult implements eventqueue.Completer.
func (x *execution) SetResult(result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode the result of event %s as JSON: %w", x.run.ID, err)
	}
	switch {
	case x.completed.Load() || x.completing.Load():
		return x.alreadyCompleted()
	case len(text) > maxResultBytes:
		return fmt.Errorf("the result of event %s has %d bytes of JSON: at most %d are retained; store it yourself, and set a reference to it", x.run.ID, len(text), maxResultBytes)
	case !utf8.Valid(text):
		return fmt.Errorf("the result of event %s is not UTF-8, as JSON has to be", x.run.ID)
	}
	if seal := x.executor.config.SealResult; seal != nil {
		if text, err = seal(&x.run.Event, text); err != nil {
			return fmt.Errorf("encrypt the result of event %s: %w", x.run.ID, err)
		}
	}
	x.result.Store((*json.RawMessage)(&text))
	return nil
}

// Progress implements eventqueue.Completer.
func (x *execution) Progress(fraction float64, note string) error {
	switch {
	case !(fraction >= 0 && fraction <= 1): // nor NaN
		return fmt.Errorf("the progress of event %s is %v: it is a fraction of 0 to 1", x.run.ID, fraction)
	case len(note) > maxNoteBytes:
		return fmt.Errorf("the note on the progress of event %s has %d bytes: at most %d are shown", x.run.ID, len(note), maxNoteBytes)
	case storable(note) != note:
		return fmt.Errorf("the note on the progress of event %s is not UTF-8 without zero bytes, as Postgres wants texts", x.run.ID)
	}
	if reported := x.executor.reported; x.progress.Swap(&Progress{fraction, note}) == nil && reported != nil {
		reported.put(x)
	}
	return nil
}

// progressWriter writes how far runs are, as their handlers report. While none reports anything it sends nothing (I12).
type progressWriter struct {
	part
	store    ProgressStore // nil: nothing is kept
	runs     *runs
	reported *batcher[*execution] // those with a progress that was not taken yet, each once

	failed bool // the last write has, which is logged once
}

// run writes until ctx ends. What a run has reported is outdated when that is over: a worker that stops does not wait for it.
func (p *progressWriter) run(ctx context.Context) {
	loop := p.rounds.Loop("writer of progress")
	defer loop.Ends()
	for ctx.Err() == nil {
		loop.Waits()
		if !p.reported.wait(nil, ctx.Done()) {
			return
		}
		loop.Within(p.config.LockTimeout / 2)
		p.write(ctx)
		loop.Waits()
		select {
		case <-time.After(progressInterval):
		case <-ctx.Done():
		}
	}
}

func (p *progressWriter) write(ctx context.Context) {
	latest := map[*execution]Progress{}
	for _, x := range p.reported.takeNow(nil, maxProgress) {
		latest[x] = *x.progress.Swap(nil)
	}
	if p.store == nil {
		return
	}
	going := p.runs.held(time.Now(), func(x *execution) bool {
		_, has := latest[x]
		return has && !x.submitted
	})
	if len(going) == 0 {
		return
	}
	claims, progress := make([]Claim, len(going)), make([]Progress, len(going))
	for i, x := range going {
		claims[i], progress[i] = x.claim(), latest[x]
	}
	p.runs.update(going, func(x *execution) { x.rowID = 0 }) // a write moves the row
	within, cancel := context.WithTimeout(ctx, p.config.LockTimeout/2)
	defer cancel()
	_, err := p.store.WriteProgress(within, claims, progress)
	if err != nil && !p.failed && ctx.Err() == nil {
		p.log.Warn("could not write how far runs are; the runs go on, and their next report is written",
			zap.Int(logkey.Count, len(claims)), zap.Error(err))
	}
	p.failed = err != nil
}

// maxProgress is of how many runs one statement writes the progress.
const maxProgress = 1000
