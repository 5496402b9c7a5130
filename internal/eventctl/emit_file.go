package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ndjson"
	"eventsv2/internal/printing"
)

// emitBatch is how many events go into one transaction and one request.
const emitBatch = 1000

// errEnough ends the second reading of a file that has grown.
var errEnough = errors.New("enough lines were read")

// emitFile reads the file twice: to check every line, and to emit.
func (p *program) emitFile(ctx context.Context, f *emitFlags) (err error) {
	config, err := p.config()
	if err != nil {
		return err
	}
	if err := checkPublishing(config, f.silent); err != nil {
		return err
	}
	input, err := p.openInput(ctx, f.file)
	if err != nil {
		return err
	}
	defer func() { _ = input.Close() }() // nothing was written to it
	total, err := checkLines(ctx, input, config.Limits())
	if err != nil {
		return err
	}
	if total == 0 {
		p.Warning(fmt.Errorf("%s has no events", input.name))
		return p.writeEmitted(emitted{})
	}
	if _, err := input.Seek(0, io.SeekStart); err != nil {
		return failed(fmt.Errorf("read %s once more: %w", input.name, err))
	}
	return p.withQueue(ctx, f.silent, func(c *connection) error {
		e := &fileEmitter{connection: c, input: input, progress: p.Progress("emit", total, "events"), total: total}
		err := e.run(ctx, config.Limits())
		e.progress.End()
		return errors.Join(err, p.writeEmitted(e.done))
	})
}

// checkLines counts the events of a file, or says what is wrong with one.
func checkLines(ctx context.Context, input *input, limits eventqueue.Limits) (total int, err error) {
	err = ndjson.Read(input, input.name, limits, func(int, eventqueue.NewEvent) error {
		total++
		return ctx.Err()
	})
	if err != nil && ctx.Err() != nil {
		return 0, failed(errors.New("interrupted: nothing was emitted"))
	}
	if err != nil {
		return 0, badInput(err)
	}
	return total, nil
}

// fileEmitter emits the events of a file in batches.
type fileEmitter struct {
	connection *connection
	input      *input
	progress   printing.Progress
	total      int

	done  emitted
	batch []eventqueue.NewEvent
	first int // line of the first event of the batch
	last  int // line of the last event that was read
}

// run emits all events. Its error says how many were emitted before.
func (e *fileEmitter) run(ctx context.Context, limits eventqueue.Limits) error {
	err := ndjson.Read(e.input, e.input.name, limits, func(line int, event eventqueue.NewEvent) error {
		if e.done.read()+len(e.batch) == e.total {
			return errEnough
		}
		if len(e.batch) == 0 {
			e.first = line
		}
		e.batch, e.last = append(e.batch, event), line
		if len(e.batch) < emitBatch {
			return nil
		}
		return e.flush(ctx)
	})
	var line *ndjson.Error
	switch {
	case errors.Is(err, errEnough):
		err = nil
	case errors.As(err, &line):
		// This is not bad input, since the first reading found no mistake.
		return failed(fmt.Errorf("the file has changed while it was read, and %s: %s", e.progressText(), line.Error()))
	}
	if err == nil {
		err = e.flush(ctx)
	}
	if err != nil {
		return failed(err)
	}
	if e.done.read() < e.total {
		return failed(fmt.Errorf("%s has become shorter while it was read: %s", e.input.name, e.progressText()))
	}
	return nil
}

// flush emits the batch. An interrupt has an effect only between two batches, so that the
// reported number of events is exact.
func (e *fileEmitter) flush(ctx context.Context) error {
	if len(e.batch) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %s; go on with line %d of %s", e.progressText(), e.first, e.input.name)
	}
	made, err := e.connection.emit(ctx, e.batch)
	if err != nil {
		return fmt.Errorf("%s; lines %d to %d of %s failed: %w", e.progressText(), e.first, e.last, e.input.name, err)
	}
	e.done.add(e.batch, made)
	e.progress.Add(len(made))
	e.batch = e.batch[:0]
	return nil
}

func (e *fileEmitter) progressText() string {
	return fmt.Sprintf("emitted %d of %s", e.done.read(), printing.Plural(e.total, "event"))
}

// emit emits events to the end, also when ctx ends meanwhile.
func (c *connection) emit(ctx context.Context, events []eventqueue.NewEvent) (emitted []eventqueue.Emitted, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	if !c.silent {
		return c.queue.EmitUnique(ctx, events...)
	}
	err = pgx.BeginFunc(ctx, c.store.Pool(), func(tx pgx.Tx) error {
		pending, err := c.queue.EmitTx(ctx, tx, events...)
		if err != nil {
			return err
		}
		for i, id := range pending.IDs {
			emitted = append(emitted, eventqueue.Emitted{ID: id, New: pending.New[i]})
		}
		return nil
	})
	return emitted, err
}
