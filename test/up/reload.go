package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eventsv2/test/programs"
)

// watchEvery is how often the handlers file is read for changes.
const watchEvery = 500 * time.Millisecond

// watch has the worker follow its handlers file until ctx ends.
func (e *environment) watch(ctx context.Context) {
	text, _ := os.ReadFile(e.handlers) // the worker has read it
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now, err := os.ReadFile(e.handlers)
		if err != nil || bytes.Equal(now, text) { // an editor may be about to write it
			continue
		}
		text = now
		if err := e.replaceWorker(ctx); err != nil && ctx.Err() == nil {
			e.out.Report("the new handlers file is refused, and the worker goes on with the old one:\n%v", err)
		}
	}
}

// replaceWorker starts a worker with the handlers file as it is, and then stops the one before it, whose runs may
// finish as they began. If there are mistakes in the file, it changes nothing.
func (e *environment) replaceWorker(ctx context.Context) error {
	check := exec.CommandContext(ctx, filepath.Join(e.dir, programs.Worker), "check", e.handlers)
	check.Env = programs.Environment(e.settings)
	said, err := check.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s", strings.TrimSpace(string(said)))
	}
	e.workers++
	name := fmt.Sprintf("worker-%d", e.workers)
	fresh, err := programs.Start(e.described(programs.Worker, name, map[string]string{"HANDLERS_FILE": e.handlers, "WORKER_GRACE_PERIOD": finishLimit.String()}))
	if err != nil {
		return err
	}
	if err := fresh.AwaitStart(ctx); err != nil { // such as for a variable that the file names and that is not set
		fresh.Kill()
		return err
	}
	e.fleet.Adopt(fresh)
	e.out.Report("%s runs: %s", name, strings.TrimSpace(string(said)))
	if before := e.worker; before != nil {
		go before.Terminate(finishLimit + stopLimit) // the fleet waits for it at the end, and not for so long
	}
	e.worker = fresh
	return nil
}
