package main

import (
	"context"
	"fmt"
	"path/filepath"

	"eventsv2/eventqueue"
	"eventsv2/test/programs"
)

// fleet starts the child processes.
type fleet struct {
	*programs.Fleet

	dir      string // of programs, logs and handlers files
	env      map[string]string
	handlers []eventqueue.HandlerKey
	target   string // URL, to which the name of a worker is added
}

// startWorker starts a worker with a handlers file of its own: the path of the
// URLs tells the target which worker asks. It blocks until the worker is ready.
func (f *fleet) startWorker(ctx context.Context, name string) error {
	path := filepath.Join(f.dir, name+".yaml")
	if err := writeHandlersFile(path, f.handlers, f.target+"/"+name); err != nil {
		return fmt.Errorf("write the handlers file of %s: %w", name, err)
	}
	return f.start(ctx, name, programs.Worker, map[string]string{"HANDLERS_FILE": path})
}

// startCron starts a cron process and blocks until it is ready.
func (f *fleet) startCron(ctx context.Context) error {
	return f.start(ctx, "cron-1", programs.Cron, nil)
}

func (f *fleet) start(ctx context.Context, name, binary string, more map[string]string) error {
	p, err := f.Start(programs.Program{Name: name, Path: filepath.Join(f.dir, binary), Log: filepath.Join(f.dir, name+".log"),
		Env: programs.Environment(f.env, more)})
	if err != nil {
		return err
	}
	return p.AwaitStart(ctx)
}
