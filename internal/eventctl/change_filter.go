package eventctl

import (
	"context"
	"errors"
	"fmt"

	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
)

// bulkChange is how a command changes the events of the queue that a filter selects.
type bulkChange struct {
	verb, done string
	all        func(ctx context.Context, filter operate.EventFilter) (operate.ChangedAll, error)
}

// changedAllDoc is the result of a change by a filter.
type changedAllDoc struct {
	DryRun bool `json:"dry_run"`
	// Done is how many events were changed, or for a dry run are selected.
	Done int `json:"changed"`
	// Running and Busy were left as they are.
	Running int `json:"running"`
	Busy    int `json:"busy"`
	// Refused were refused by the database, and FirstRefused are the first of them.
	Refused      int       `json:"refused"`
	FirstRefused []refusal `json:"first_refused,omitempty"`
}

func (d *changedAllDoc) add(done operate.ChangedAll) {
	d.Done, d.Running, d.Busy, d.Refused = done.Changed, done.Running, done.Busy, done.Refused
	for _, r := range done.FirstRefused {
		d.FirstRefused = append(d.FirstRefused, refusal{r.ID, changeRefusal(r)})
	}
}

func (d changedAllDoc) text(c bulkChange) string {
	if d.DryRun {
		return fmt.Sprintf("would %s %s, but for those that run then", c.verb, printing.Plural(d.Done, "event"))
	}
	text := fmt.Sprintf("%s %s", c.done, printing.Plural(d.Done, "event"))
	if d.Running > 0 {
		text += fmt.Sprintf("; left %s", printing.Plural(d.Running, "running event"))
	}
	if d.Busy > 0 {
		text += fmt.Sprintf("; left %s that others were writing", printing.Plural(d.Busy, "event"))
	}
	if d.Refused > 0 {
		text += fmt.Sprintf("; left %s that the database refuses to write", printing.Plural(d.Refused, "event"))
	}
	return text
}

// changeSelected changes what a filter selects, and reports what was done even if an error follows.
func (p *program) changeSelected(ctx context.Context, change bulkChange, c *connection, filter operate.EventFilter, dryRun bool) error {
	doc := changedAllDoc{DryRun: dryRun}
	var err error
	if dryRun {
		var changer *operate.Changer
		if changer, err = operate.NewChanger(c.store, c.queue); err == nil {
			doc.Done, err = changer.Count(ctx, filter)
		}
	} else {
		var done operate.ChangedAll
		done, err = change.all(ctx, filter)
		doc.add(done)
	}
	text := doc.text(change)
	if err != nil {
		return errors.Join(failed(fmt.Errorf("%s, and then: %w", text, interrupted(ctx, err))), p.writeLine(doc, text))
	}
	return errors.Join(refusedError("not "+change.done, doc.FirstRefused), p.writeLine(doc, text))
}

// interrupted is the error of a command that was interrupted, or the given one.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
