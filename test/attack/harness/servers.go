package harness

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"eventsv2/internal/backoff"
	"eventsv2/test/programs"
	"eventsv2/test/services"
)

// Server is a service that can be killed and started again.
type Server struct {
	*services.Service

	// Attacked is held by whoever attacks it.
	Attacked sync.Mutex
}

// Crash kills the server and starts it again after a while, sooner when ctx ends: the end of the
// load must not leave it down.
func (s *Server) Crash(ctx context.Context, down time.Duration) error {
	KillTree(s.PID)
	backoff.Sleep(ctx, down)
	return s.Restart(context.WithoutCancel(ctx))
}

// Freeze stops a process for a while, less when ctx ends.
func Freeze(ctx context.Context, p *programs.Process, lasts time.Duration) {
	p.Signal(syscall.SIGSTOP)
	backoff.Sleep(ctx, lasts)
	p.Signal(syscall.SIGCONT)
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
