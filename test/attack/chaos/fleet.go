package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/harness"
	"eventsv2/test/programs"
	"eventsv2/test/webtarget"
)

// programChaosWorker is the binary of the workers that embed the library.
const programChaosWorker = "chaosworker"

// restartAfter is the wait before a slot gets its next process.
const restartAfter = 300 * time.Millisecond

// stopLimit is how long a process may take to end after SIGTERM.
const stopLimit = 45 * time.Second

// slot is the place of one program: it has connections of its own and one
// process after the other.
type slot struct {
	name     string
	program  string
	postgres *harness.Proxy
	notifier *harness.Proxy

	// attacked is held by whoever attacks the process.
	attacked sync.Mutex

	mu      sync.Mutex
	current *programs.Process // nil while there is none
	number  int               // of the current or last process
	ended   bool              // no further process
	hold    time.Duration
}

// fleet runs the programs.
type fleet struct {
	deployment *harness.Deployment
	target     *target
	faults     *check.Faults
	slots      map[string]*slot
	running    sync.WaitGroup
	broken     context.CancelCauseFunc
	// reports hear what the processes of some slots, which have to live through the whole run, say of their
	// size; nil of one that does not.
	reports map[string]*growth.Listener

	mu      sync.Mutex
	remarks []string
}

// run runs one process after the other in a slot until it is ended.
func (f *fleet) run(s *slot) {
	for {
		p, err := f.next(s)
		if err != nil {
			f.broken(err)
			return
		}
		if p == nil {
			return
		}
		<-p.Exited
		f.ended(p)
		s.mu.Lock()
		s.current = nil
		hold := max(s.hold, restartAfter)
		s.hold = 0
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return
		}
		if _, lasting := f.reports[s.name]; lasting {
			f.broken(p.Failure())
			return
		}
		time.Sleep(hold)
	}
}

// next starts the next process of a slot, or returns nil when there is to be none.
func (f *fleet) next(s *slot) (*programs.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil
	}
	s.number++
	name := fmt.Sprintf("%s-%d", s.name, s.number)
	env, err := f.environment(s, name)
	if err != nil {
		return nil, err
	}
	program := programs.Program{Name: name, Path: filepath.Join(f.deployment.Dir, s.program), Log: filepath.Join(f.deployment.Dir, name+".log"), Env: env}
	if listener := f.reports[s.name]; listener != nil {
		program.Read = listener.Listen
	}
	p, err := programs.Start(program)
	if err != nil {
		return nil, err
	}
	s.current = p
	f.faults.Born(name, s.name)
	return p, nil
}

func (f *fleet) environment(s *slot, name string) ([]string, error) {
	databaseURL, err := s.postgres.Through(f.deployment.Postgres.URL, name)
	if err != nil {
		return nil, err
	}
	own := map[string]string{"DATABASE_URL": databaseURL}
	switch s.program {
	case programChaosWorker:
		own["CHAOS_JOURNAL"] = f.journal(name)
		if f.reports[s.name] != nil {
			own["CHAOS_REPORTS"] = "true"
		}
	case programs.Worker:
		path := filepath.Join(f.deployment.Dir, name+".yaml")
		if err := webtarget.WriteHandlersFile(path, f.target.server.URL()+"/"+name, task.Handlers()); err != nil {
			return nil, err
		}
		own["HANDLERS_FILE"] = path
	}
	if f.reports != nil { // for hours: a line per event would fill the disk
		own["LOG_LEVEL"], own["LOG_EVENTS"] = "warn", "failures"
	}
	return programs.Environment(environment(), programs.PubSubEnvironment(f.deployment.PubSub(s.notifier.Address())), own), nil
}

// journal is the journal of a process.
func (f *fleet) journal(name string) string { return filepath.Join(f.deployment.Dir, name+".journal") }

// ended records how a process ended. One that was not killed, had started and
// did not end with 0 is remarkable.
func (f *fleet) ended(p *programs.Process) {
	f.faults.Died(p.Name)
	if p.Status == 0 || p.Status == 128+int(syscall.SIGKILL) || !p.Started() {
		return
	}
	f.remark(fmt.Sprintf("%s ended with status %d", p.Name, p.Status))
}

// remark retains what is remarkable for the report.
func (f *fleet) remark(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remarks = append(f.remarks, text)
}

// start starts all slots.
func (f *fleet) start() {
	for _, name := range slices.Sorted(maps.Keys(f.slots)) {
		f.running.Go(func() { f.run(f.slots[name]) })
	}
}

// lasting are the processes that have to live through the whole run.
func (f *fleet) lasting() map[string]*programs.Process {
	all := map[string]*programs.Process{}
	for name := range f.reports {
		if p := f.slots[name].process(); p != nil {
			all[name] = p
		}
	}
	return all
}

// process is the current process of a slot, nil when there is none.
func (s *slot) process() *programs.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// kill ends the process of a slot like a crash and leaves the slot empty for a
// while. It returns the name of the process; "" when there was none.
func (s *slot) kill(empty time.Duration) string {
	s.mu.Lock()
	p := s.current
	s.hold = empty
	s.mu.Unlock()
	if p == nil {
		return ""
	}
	p.Kill()
	return p.Name
}

// end lets no further process start in a slot, and returns the current one.
func (s *slot) end() *programs.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.current
}

// stop ends all slots with SIGTERM, and with SIGKILL those that take too long.
func (f *fleet) stop() error {
	var stopping errgroup.Group
	for _, s := range f.slots {
		if p := s.end(); p != nil {
			stopping.Go(func() error {
				if !p.Terminate(stopLimit) {
					return fmt.Errorf("%s did not end within %s of SIGTERM", p.Name, stopLimit)
				}
				return nil
			})
		}
	}
	err := stopping.Wait()
	f.running.Wait()
	return err
}
