package worker

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

// progressInterval is the least time between two writes of progress.
const progressInterval = 2 * time.Second

// ProgressStore is implemented by a Store that keeps how far runs are.
type ProgressStore interface {
	// WriteProgress writes, under the fence, how far the runs of claims are, in one statement. No event may be named twice.
	WriteProgress(ctx context.Context, claims []Claim, progress []eventqueue.Progress) (WriteResult, error)
}

// SetResult implements eventqueue.Reporter.
func (x *execution) SetResult(result json.RawMessage) (err error) {
	if seal := x.executor.config.SealResult; seal != nil {
		result, err = seal(&x.run.Event, result)
	}
	if err == nil {
		x.result = result
	}
	return err
}

// ShowProgress implements eventqueue.Reporter.
func (x *execution) ShowProgress(progress eventqueue.Progress) {
	if said := x.executor.said; x.progress.Swap(&progress) == nil && said != nil {
		said.put(x)
	}
}

// progressWriter writes how far runs are, as their handlers have said. While none says anything it sends nothing (I12).
type progressWriter struct {
	part
	store ProgressStore // nil: nothing is kept
	runs  *runs
	said  *batcher[*execution] // those with a progress that was not taken yet, each once

	failed bool // the last write has, which is logged once
}

// run writes until ctx ends. What a run has said is outdated when that is over: a worker that stops does not wait for it.
func (p *progressWriter) run(ctx context.Context) {
	loop := p.rounds.Loop("writer of progress")
	defer loop.Ends()
	for ctx.Err() == nil {
		loop.Waits()
		if !p.said.wait(nil, ctx.Done()) {
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
	said := map[*execution]eventqueue.Progress{}
	for _, x := range p.said.takeNow(nil, maxProgress) {
		said[x] = *x.progress.Swap(nil)
	}
	if p.store == nil {
		return
	}
	going := p.runs.held(time.Now(), func(x *execution) bool {
		_, has := said[x]
		return has && !x.submitted
	})
	if len(going) == 0 {
		return
	}
	claims, progress := make([]Claim, len(going)), make([]eventqueue.Progress, len(going))
	for i, x := range going {
		claims[i], progress[i] = x.claim(), said[x]
	}
	p.runs.update(going, func(x *execution) { x.rowID = 0 }) // a write moves the row
	within, cancel := context.WithTimeout(ctx, p.config.LockTimeout/2)
	defer cancel()
	_, err := p.store.WriteProgress(within, claims, progress)
	if err != nil && !p.failed && ctx.Err() == nil {
		p.log.Warn("could not write how far runs are, which pages and API show; the runs go on, and what they say next is written",
			zap.Int(logkey.Count, len(claims)), zap.Error(err))
	}
	p.failed = err != nil
}

// maxProgress is of how many runs one statement writes the progress.
const maxProgress = 1000
