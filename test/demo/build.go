package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// buildPrograms compiles what the fleet runs into a directory. It blocks until
// the compiler is done or ctx ends.
func buildPrograms(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "eventsv2/cmd/"+programWorker, "eventsv2/cmd/"+programCron)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build cmd/%s and cmd/%s (run the demo in its repository, with go on PATH): %w\n%s",
			programWorker, programCron, err, strings.TrimSpace(string(out)))
	}
	return nil
}
