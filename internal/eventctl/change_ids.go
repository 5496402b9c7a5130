package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// changedDoc is the result of a change of events by their ids.
type changedDoc struct {
	Changed int `json:"changed"`
	// TakenOver are the requeued events whose expired locks were cleared, and HeldBack those that a rule keeps from running.
	TakenOver []eventqueue.EventID `json:"taken_over,omitempty"`
	HeldBack  []heldBack           `json:"held_back,omitempty"`
	// Ending are the cancelled events whose workers were asked to end their runs.
	Ending  []eventqueue.EventID `json:"ending,omitempty"`
	Refused []view.Refusal       `json:"refused"`
}

// heldBack is a requeued event that a rule keeps from running.
type heldBack struct {
	ID   eventqueue.EventID `json:"id"`
	Rule operate.RuleType   `json:"rule"`
}

// add adds the result of an event. What was cancelled before is as it was asked for.
func (d *changedDoc) add(verb operate.Verb, r operate.Changed) {
	switch {
	case r.Done():
		d.Changed++
	case r.Result == operate.ChangeEnding:
		d.Ending = append(d.Ending, r.ID)
	case r.Result != operate.ChangeCancelled || verb != operate.VerbCancel:
		d.Refused = append(d.Refused, refusalOf(r))
	}
	if r.TakenOver {
		d.TakenOver = append(d.TakenOver, r.ID)
	}
	if r.Rule != "" {
		d.HeldBack = append(d.HeldBack, heldBack{r.ID, r.Rule})
	}
}

// changeFunc changes events by their ids.
type changeFunc func(ctx context.Context, changer *operate.Changer, ids []eventqueue.EventID) ([]operate.Changed, error)

// changeIDs changes events in batches, each to its end.
func (p *program) changeIDs(ctx context.Context, c *connection, verb operate.Verb, ids []eventqueue.EventID, change changeFunc) error {
	changer, err := operate.NewChanger(c.store, c.queue)
	if err != nil {
		return failed(err)
	}
	doc, words := changedDoc{Refused: []view.Refusal{}}, wordsOfMany[verb]
	for batch := range slices.Chunk(ids, operate.MaxChangeEvents) {
		results, err := toTheEnd(ctx, func(ctx context.Context) ([]operate.Changed, error) { return change(ctx, changer, batch) })
		if err != nil {
			return errors.Join(failed(fmt.Errorf("%s %s, and then: %w", printing.Plural(doc.Changed, "event"), words.done, err)), p.writeChanged(doc, words))
		}
		for _, r := range results {
			doc.add(verb, r)
		}
	}
	return errors.Join(refusedError("not "+words.done, doc.Refused), p.writeChanged(doc, words))
}

func (p *program) writeChanged(doc changedDoc, words manyWords) error {
	return p.write(doc, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s %s%s\n", words.done, printing.Plural(doc.Changed, "event"), words.rest)
		for _, id := range doc.TakenOver {
			_, _ = fmt.Fprintf(w, "event %s: the lock that had expired is cleared, and its run counts as failed if it died alone\n", id)
		}
		for _, id := range doc.Ending {
			_, _ = fmt.Fprintf(w, "event %s runs: its worker was asked to end the run; see eventctl explain %[1]s\n", id)
		}
		for _, h := range doc.HeldBack {
			kind := operate.KindOf(h.Rule)
			_, _ = fmt.Fprintf(w, "event %s does not run before its handler, which is %s by %s, is %s: see eventctl show %[1]s\n", h.ID, kind.State, kind.Holder, kind.Lifted)
		}
	})
}
