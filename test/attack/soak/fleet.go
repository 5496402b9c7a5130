package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"eventsv2/test/programs"
)

// The processes. The long-lived programs live through the whole run, so that what grows in
// them can be seen; the junior is killed and restarted.
const (
	longLivedWorker  = "worker-1"
	juniorWorker     = "worker-2"
	longLivedCron    = "cron"
	longLivedLibrary = "library"
)

func longLived() []string { return []string{longLivedWorker, longLivedCron, longLivedLibrary} }

// stopLimit is how long a process may take to end after SIGTERM: its grace
// period, and what a busy machine adds.
const stopLimit = 30 * time.Second

// fleet starts the processes.
type fleet struct {
	*programs.Fleet

	dir  string // of binaries, logs and the handlers file
	env  map[string]string
	read func(io.Reader) // of the library's notes
}

// start starts the process of a name.
func (f *fleet) start(name string) error {
	p := programs.Program{Name: name, Log: filepath.Join(f.dir, name+".log"), Env: programs.Environment(f.env)}
	switch name {
	case longLivedLibrary:
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		p.Path, p.Read, p.Env = self, f.read, append(p.Env, roleVariable+"="+roleLibrary)
	case longLivedCron:
		p.Path = filepath.Join(f.dir, programs.Cron)
	default:
		p.Path = filepath.Join(f.dir, programs.Worker)
	}
	_, err := f.Start(p)
	return err
}
