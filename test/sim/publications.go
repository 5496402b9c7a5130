package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/cleanup"
	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// The handlers that publish in the outside store: one replaces what it has published, the other one cleans up.
const (
	reporting = "report"
	sweeping  = "sweep"
)

// recipients are whom reports are for. A report replaces those for the same one.
var recipients = []string{"anna", "ben"}

// reportTTLs are how long reports stay.
var reportTTLs = []cleanup.TTL{cleanup.Replace, cleanup.TTL(5 * time.Second), cleanup.TTL(longestTTL)}

const longestTTL = 20 * time.Second

// publisher is one run that publishes.
type publisher struct {
	*process
	run *eventqueue.Run
	d   dice
}

// registerReports registers the handlers that publish.
func (p *process) registerReports(handlers *eventqueue.Handlers, policy eventqueue.Policy) {
	for _, name := range []string{reporting, sweeping} {
		must(handlers.Register(reportKey(name), eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
			by := publisher{p, run, newDice(mix(p.w.seed, uint64(run.ID), uint64(run.Attempt)), "publisher")}
			pl := plan{first: by.sweep}
			if name == reporting {
				pl = p.plan(run, policy.Timeout)
				pl.first = by.report
			}
			return p.follow(ctx, run, policy.Timeout, pl, func(result oracle.Result) error {
				return p.mark(run, oracle.RunEnded, func() oracle.Result { return result })
			})
		}), policy))
	}
}

func reportKey(name string) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: "_"}
}

// publications is the package under test, on the process' way to the database.
func (by publisher) publications() *cleanup.Publications {
	return cleanup.NewPublications(direct{by.store(), "Cleanup", by.key(), by.w.recorded})
}

func (by publisher) key() string { return fmt.Sprintf("%s#%d", by.run.ID, by.run.Attempt) }

// report publishes. Whom for, and for how long, is its event's.
func (by publisher) report(ctx context.Context) error {
	d := newDice(mix(by.w.seed, uint64(by.run.ID)), "report")
	to, ttl := recipients[d.IntN(len(recipients))], reportTTLs[d.IntN(len(reportTTLs))]
	_, err := by.publications().Publish(ctx, by.run, by.publication(to, ttl))
	return err
}

// sweep cleans up whatever has expired.
func (by publisher) sweep(ctx context.Context) error {
	for _, to := range recipients {
		if _, err := by.publications().Clean(ctx, by.run, by.publication(to, cleanup.Replace)); err != nil {
			return err
		}
	}
	return nil
}

func (by publisher) publication(to string, ttl cleanup.TTL) cleanup.Publication {
	config := cleanup.Config{Key: "report", TTL: ttl, Inputs: []string{"to"}}
	key, err := cleanup.NewKey(by.run.Canvas, "outside", config, map[string]any{"to": to})
	must(err)
	store := &by.w.published
	return cleanup.Publication{
		Key: key, TTL: ttl,
		Send: func(ctx context.Context, intent cleanup.Intent) ([]byte, error) { return by.send(ctx, intent, ttl) },
		Find: func(ctx context.Context, intent cleanup.Intent) (data []byte, found bool, err error) {
			err = by.call(ctx, "Find", func() string {
				i := slices.IndexFunc(store.postings, func(o posting) bool { return o.token == intent.Token })
				if found = i >= 0; found {
					data = []byte(store.postings[i].id)
				}
				return string(data)
			})
			return data, found, err
		},
		Delete: func(ctx context.Context, c cleanup.Cleanup) error {
			return by.call(ctx, "Delete", func() string {
				id := string(c.Data)
				if i := slices.IndexFunc(store.postings, func(o posting) bool { return o.id == id }); i >= 0 {
					store.postings = slices.Delete(store.postings, i, i+1)
					by.w.add(by.record(oracle.PublicationDeleted, id, key))
				}
				return id
			})
		},
	}
}

// send publishes: now and then deaf to its context, and so long after the time of its run, or just before its process dies.
func (by publisher) send(ctx context.Context, intent cleanup.Intent, ttl cleanup.TTL) ([]byte, error) {
	if by.d.chance(0.15) {
		if end, bounded := ctx.Deadline(); bounded {
			defer func() {
				if time.Now().After(end) {
					by.hung(by.run.ID, end)()
				}
			}()
		}
		ctx = context.WithoutCancel(ctx)
		time.Sleep(by.d.between(0, lockTimeout*5/2))
	}
	store, id := &by.w.published, ""
	err := by.call(ctx, "Send", func() string {
		store.sent++
		id = fmt.Sprint("m", store.sent)
		store.postings = append(store.postings, posting{id, intent.Token})
		store.senders[intent.Token] = by.run.ID
		r := by.record(oracle.PublicationSent, id, intent.Key)
		r.TTL, r.Due = time.Duration(ttl), store.rows[publicationRow{Event: by.run.ID, Token: intent.Token}]
		by.w.add(r)
		return id
	})
	if err == nil && by.d.chance(0.05) {
		err = by.outcome(ctx, by.run, plan{then: crash})
	}
	if err != nil && id != "" {
		by.w.sendFailed(id)
		return nil, err
	}
	return []byte(id), err
}

func (by publisher) record(kind oracle.Kind, id string, key cleanup.Key) oracle.Record {
	return oracle.Record{Kind: kind, Actor: by.name, Event: by.run.ID, Attempt: by.run.Attempt, Value: id, Publication: key.String()}
}

// call calls the outside store, which refuses and forgets to answer more often than the database.
func (by publisher) call(ctx context.Context, op string, f func() string) error {
	refuses, forgets := by.d.chance(0.1), by.d.chance(0.1)
	if by.w.healed() {
		refuses, forgets = false, false
	}
	return by.do(ctx, call{to: outside, op: op, key: by.key()}, func() (string, error) {
		if refuses {
			return "", errHandler
		}
		result := f()
		if forgets {
			return result, errHandler
		}
		return result, nil
	})
}

// sendFailed notes that the run which has sent a publication was told that it failed.
func (w *world) sendFailed(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["publication sent, and its handler was told that it failed"]++
	for i := range w.history.Records {
		if r := &w.history.Records[i]; r.Kind == oracle.PublicationSent && r.Value == id {
			r.Failed = true
		}
	}
}

// recorded records the publications that a statement has put on record.
func (w *world) recorded(p *process) {
	rows := w.tables.publicationRows()
	for row := range rows {
		if _, before := w.published.rows[row]; row.Data != "" && !before {
			w.add(oracle.Record{Kind: oracle.PublicationRecorded, Actor: p.name, Event: w.published.senders[row.Token], Value: row.Data})
		}
	}
	w.published.rows = rows
}

// drawReports draws events whose handlers publish, or clean up.
func (p *process) drawReports(d dice) []eventqueue.NewEvent {
	events := make([]eventqueue.NewEvent, 1+d.IntN(3))
	for i := range events {
		name := reporting
		if d.chance(0.1) {
			name = sweeping
		}
		events[i] = p.newReport(name, d.between(0, 10*time.Second))
	}
	return events
}

func (p *process) newReport(name string, delay time.Duration) eventqueue.NewEvent {
	p.w.mu.Lock()
	p.w.serial++
	serial := p.w.serial
	p.w.mu.Unlock()
	key := reportKey(name)
	e := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Delay: delay}
	e.Value = p.payload(&e, payload{Serial: serial})
	return e
}

// sweepOutside has everything cleaned up, when whoever is late has published and all of it has expired.
func (w *world) sweepOutside() {
	w.incarnation++
	p := w.newProcess(fmt.Sprintf("e1.%d", w.incarnation))
	w.emitters[0] = p
	e := p.newReport(sweeping, 5*lockTimeout+2*longestTTL)
	p.run(func(ctx context.Context) { _, _ = p.queue.Emit(ctx, e) }) // what it leaves out is found at the end
}
