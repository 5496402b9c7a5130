package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ndjson"
)

const (
	// emitBatch is how many events go into one transaction and one request.
	emitBatch = 1000

	// batchTimeout bounds one of them.
	batchTimeout = 2 * time.Minute
)

// errEnough ends the second reading of a file that has grown.
var errEnough = errors.New("enough lines were read")

// emitFile reads the file twice: to check every line, and to emit.
func (a *app) emitFile(ctx context.Context, f *emitFlags) (err error) {
	config, err := a.config()
	if err != nil {
		return err
	}
	if err := checkPublishing(config, f.silent); err != nil {
		return err
	}
	input, err := a.openInput(ctx, f.file)
	if err != nil {
		return err
	}
	defer func() { _ = input.Close() }() // it is not needed any more
	total, err := checkLines(ctx, input, config.Limits())
	if err != nil {
		return err
	}
	if total == 0 {
		a.complain("warning", fmt.Errorf("%s has no events", input.name))
		return a.reportEmitted(emitted{})
	}
	if _, err := input.Seek(0, io.SeekStart); err != nil {
		return failed(fmt.Errorf("read %s once more: %w", input.name, err))
	}
	return a.withQueue(ctx, f.silent, func(bell *doorbell) error {
		e := &fileEmitter{bell: bell, input: input, progress: a.progress("emit", total), total: total}
		err := e.run(ctx, config.Limits())
		e.progress.end()
		return errors.Join(err, a.reportEmitted(e.done))
	})
}

// checkLines counts the events of a file, or tells what is wrong with one.
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
	bell     *doorbell
	input    *input
	progress progress
	total    int

	done  emitted
	batch []eventqueue.NewEvent
	first int // line of the first event of the batch
	last  int // line of the last event that was read
}

// run returns an error that says how far it came.
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
		// Not bad input: it was good when it was checked.
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

// read is how many events of the input have been dealt with.
func (e *emitted) read() int { return e.Count + e.Repeats }

// flush emits the batch. An interrupt is heeded between batches only, so that
// what is reported as emitted is exactly what was.
func (e *fileEmitter) flush(ctx context.Context) error {
	if len(e.batch) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %s; go on with line %d of %s", e.progressText(), e.first, e.input.name)
	}
	events, err := e.bell.emit(ctx, e.batch)
	if err != nil {
		return fmt.Errorf("%s; lines %d to %d of %s failed: %w", e.progressText(), e.first, e.last, e.input.name, err)
	}
	e.done.add(events)
	e.progress.add(len(events))
	e.batch = e.batch[:0]
	return nil
}

func (e *fileEmitter) progressText() string {
	return fmt.Sprintf("emitted %d of %s", e.done.read(), plural(e.total, "event"))
}

// emit emits events to the end, also when ctx ends meanwhile.
func (b *doorbell) emit(ctx context.Context, events []eventqueue.NewEvent) (emitted []eventqueue.Emitted, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	if !b.silent {
		return b.queue.EmitUnique(ctx, events...)
	}
	err = pgx.BeginFunc(ctx, b.store.Pool(), func(tx pgx.Tx) error {
		pending, err := b.queue.EmitTx(ctx, tx, events...)
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

// input is a file that can be read twice.
type input struct {
	*os.File
	name string
}

// openInput opens a regular file, or copies what is none (standard input, a
// pipe) to a temporary file that nobody else can open.
func (a *app) openInput(ctx context.Context, path string) (*input, error) {
	if path == "-" {
		return spool(ctx, a.stdin, "standard input")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, badInput(fmt.Errorf("--file: %w", err))
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // the first error says what went wrong
		return nil, failed(fmt.Errorf("--file: %w", err))
	}
	if info.Mode().IsRegular() || info.IsDir() { // reading a directory says what is wrong
		return &input{file, path}, nil
	}
	defer func() { _ = file.Close() }() // it was only read
	return spool(ctx, file, path)
}

// spool copies a stream. The file has no name any more when it is filled, so
// that it goes with the process. A read from a terminal or a pipe cannot be
// interrupted: the copy is abandoned then, as the process is about to end.
func spool(ctx context.Context, from io.Reader, name string) (*input, error) {
	file, err := os.CreateTemp("", "eventctl-*.ndjson")
	if err != nil {
		return nil, failed(fmt.Errorf("make a temporary file for %s: %w", name, err))
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close() // the first error says what went wrong
		return nil, failed(fmt.Errorf("unlink the temporary file for %s: %w", name, err))
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(file, from)
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		return nil, failed(errors.New("interrupted: nothing was emitted"))
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the first error says what went wrong
		return nil, failed(fmt.Errorf("copy %s to a temporary file: %w", name, err))
	}
	return &input{file, name}, nil
}
