package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"eventsv2/test/command"
	"eventsv2/test/services"
)

// Servers starts a Postgres with fsync and a Pub/Sub emulator of the program's own, which
// can be killed.
func Servers(ctx context.Context, c *command.Cleanups) (postgres, emulator *services.Service, err error) {
	if postgres, err = services.Postgres(ctx, services.Durable(), services.Private()); err != nil {
		return nil, nil, err
	}
	c.OnCleanup(postgres.Stop)
	if emulator, err = services.Emulator(ctx, services.Private()); err != nil {
		return nil, nil, err
	}
	c.OnCleanup(emulator.Stop)
	if postgres.PID == 0 || emulator.PID == 0 {
		return nil, nil, errors.New("Postgres and the emulator must be started from binaries, so that they can be killed: install both")
	}
	return postgres, emulator, nil
}

// KillTree ends a server at once with all of its children, like a crash of the
// machine that it runs on. Where there is no /proc only the server is killed.
func KillTree(pid int) {
	var children []int
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err == nil {
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	// The children first: they are ours as long as their parent lives.
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended by itself
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}
