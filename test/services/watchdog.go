package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// watchdogScript runs a command and outlives whoever started it. It reads one
// pipe: when that ends, because Stop closed it or because its owner is dead, the
// command is told to stop, ten seconds later killed, and the directory removed.
// The word keep before the end leaves the directory, for the next run in it.
//
// It tells its owner "pid N" when the command runs and "exit N" when it has
// ended. Only this shell waits for the command, and it ends the subshell that
// watches the pipe before anything else: no signal can reach a later process
// that was given the same number.
const watchdogScript = `
trap '' HUP INT TERM PIPE
exec 4<&0
dir=$1 signal=$2 log=$3
shift 3
( trap - HUP INT TERM PIPE; exec "$@" ) </dev/null >>"$log" 2>&1 4<&- &
pid=$!
( while read -r _ <&4; do :; done
  kill -s "$signal" "$pid"; sleep 10; kill -s KILL "$pid" ) </dev/null >/dev/null 2>&1 &
watch=$!
echo "pid $pid"
wait "$pid"
status=$?
kill -s KILL "$watch"
wait "$watch"
echo "exit $status"
word=
read -r word <&4
cd /
[ "$word" = keep ] || rm -rf "$dir"
`

// logName is the file, in the service's directory, for what the server prints.
const logName = "server.log"

// home is the directory of a service and the user who owns it.
type home struct {
	dir  string
	cred *syscall.Credential // nil: as oneself
	env  []string

	// last is the process that answers for removing the directory.
	last *process
}

// newHome makes a fresh directory for a service, in base unless that is empty.
func newHome(base, what string, cred *syscall.Credential, env []string) (*home, error) {
	if base == "" && cred != nil {
		base = openTempDir()
	}
	dir, err := os.MkdirTemp(base, "eventsv2-"+what+"-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", what, err)
	}
	if cred != nil {
		if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
			return nil, errors.Join(fmt.Errorf("give the directory for %s to its user: %w", what, err), os.RemoveAll(dir))
		}
	}
	return &home{dir: dir, cred: cred, env: env}, nil
}

// openTempDir is a directory for temporary files that every user can reach.
func openTempDir() string {
	for dir := os.TempDir(); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 || (dir == os.TempDir() && info.Mode().Perm()&0o002 == 0) {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			return os.TempDir()
		}
	}
}

// run starts a command in the home under a new watchdog, which takes over the
// duty to remove the directory. The one before must have ended.
func (h *home) run(signal string, command ...string) (*process, error) {
	p, err := startProcess(h, signal, command)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	if h.last != nil {
		h.last.release()
	}
	h.last = p
	return p, nil
}

// remove stops what runs in the home and removes it.
func (h *home) remove(ctx context.Context) error {
	if h.last == nil {
		return os.RemoveAll(h.dir)
	}
	return h.last.stop(ctx)
}

// log returns what has been printed so far in the home; nothing yet is empty.
func (h *home) log() string {
	text, err := os.ReadFile(filepath.Join(h.dir, logName))
	if err != nil {
		return ""
	}
	return string(text)
}

// logTail returns the end of the log, for error messages.
func (h *home) logTail() string {
	const lines = 15
	all := strings.Split(strings.TrimSpace(h.log()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// process is a command that runs under a watchdog.
type process struct {
	pid  int
	pipe *os.File // its end ends the command

	exited chan struct{} // closed when the command has ended
	status int           // its exit status; read after exited
	gone   chan struct{} // closed when the watchdog has ended, too
}

// startProcess blocks for as long as a shell needs to fork.
func startProcess(h *home, signal string, command []string) (*process, error) {
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the watchdog's pipe: %w", err)
	}
	args := append([]string{"-c", watchdogScript, "eventsv2-watchdog", h.dir, signal, logName}, command...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, h.env, stdin
	// A session of its own: what a terminal sends to its processes is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: h.cred}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), pipe.Close())
	}
	p := &process{pipe: pipe, exited: make(chan struct{}), gone: make(chan struct{})}
	lines := bufio.NewScanner(stdout)
	if lines.Scan() {
		p.pid, _ = strconv.Atoi(strings.TrimPrefix(lines.Text(), "pid "))
	}
	go p.follow(cmd, lines)
	// The shell has its own copy; an error here could only be a second close.
	_ = stdin.Close()
	if p.pid == 0 {
		return nil, errors.Join(errors.New("the watchdog shell /bin/sh did not start the command"), p.stop(context.Background()))
	}
	return p, nil
}

// follow reports the command's end and then the watchdog's. It is the only
// reader of the watchdog, and holds p, so that the pipe stays open while the
// command runs even if no other process keeps the service.
func (p *process) follow(cmd *exec.Cmd, lines *bufio.Scanner) {
	defer close(p.gone)
	for lines.Scan() {
		if status, ok := strings.CutPrefix(lines.Text(), "exit "); ok {
			p.status, _ = strconv.Atoi(status)
			close(p.exited)
		}
	}
	// The watchdog's own status says nothing: what it had to do is done, or it
	// was killed.
	_ = cmd.Wait()
	select {
	case <-p.exited:
	default:
		p.status = -1
		close(p.exited)
	}
}

// stop ends the command and removes the directory; it blocks until that is done
// or ctx ends.
func (p *process) stop(ctx context.Context) error {
	// Closing twice is harmless, and the end of the pipe is all that matters.
	_ = p.pipe.Close()
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for process %d to end: %w", p.pid, context.Cause(ctx))
	}
}

// release ends the watchdog of a command that has ended and leaves the directory.
func (p *process) release() {
	<-p.exited
	// A watchdog that is gone already cannot read the word and need not.
	_, _ = p.pipe.WriteString("keep\n")
	_ = p.pipe.Close()
	<-p.gone
}

// kill ends the command at once and waits until it has ended.
func (p *process) kill() {
	select {
	case <-p.exited:
		return
	default:
	}
	// An error means that it has just ended by itself.
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.exited
}
