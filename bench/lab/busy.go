package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of processor times in /proc.
const ticksPerSecond = 100

// Busy measures, while something runs, how many cores the benchmark itself kept
// busy and how many everything else on the machine did.
type Busy struct {
	began       time.Time
	total, mine int64 // ticks
}

// Usage is a number of cores.
type Usage struct{ Mine, Others float64 }

func (u Usage) String() string {
	return fmt.Sprintf("%.2f cores, others %.2f of %d", u.Mine, u.Others, runtime.NumCPU())
}

// StartBusy begins a measurement. Where there is no /proc everything is 0.
func (l *Lab) StartBusy() Busy { return Busy{time.Now(), totalTicks(), l.ownTicks()} }

// StopBusy ends it.
func (l *Lab) StopBusy(b Busy) Usage {
	seconds := time.Since(b.began).Seconds()
	total := float64(totalTicks()-b.total) / ticksPerSecond / seconds
	mine := float64(l.ownTicks()-b.mine) / ticksPerSecond / seconds
	return Usage{Mine: mine, Others: max(total-mine, 0)}
}

// totalTicks returns how long all processors have worked so far.
func totalTicks() (ticks int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		idle := i == 3 || i == 4 || i > 7 // idle, iowait; guests are in user
		if err == nil && !idle {
			ticks += n
		}
	}
	return ticks
}

// ownTicks returns how long this process and the servers, with their children (ended ones
// as well), have worked so far.
func (l *Lab) ownTicks() (ticks int64) {
	roots := []int{os.Getpid()}
	if l.postgres != nil && l.postgres.PID != 0 {
		roots = append(roots, l.postgres.PID)
	}
	if l.emulator != nil && l.emulator.PID != 0 {
		roots = append(roots, l.emulator.PID)
	}
	all := processes()
	seen := map[int]bool{}
	for len(roots) > 0 {
		pid := roots[0]
		roots = roots[1:]
		if p, ok := all[pid]; ok && !seen[pid] {
			seen[pid] = true
			ticks += p.ticks
			roots = append(roots, p.children...)
		}
	}
	return ticks
}

type process struct {
	ticks    int64
	children []int
}

func processes() map[int]*process {
	all := map[int]*process{}
	of := func(pid int) *process {
		if all[pid] == nil {
			all[pid] = &process{}
		}
		return all[pid]
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range paths {
		pid, parent, ticks, err := readStat(path)
		if err != nil {
			continue // it has ended
		}
		of(pid).ticks = ticks
		of(parent).children = append(of(parent).children, pid)
	}
	return all
}

var errStat = errors.New("not as proc(5) says")

// readStat reads a process' number, its parent's, and its own processor time with
// that of its ended children.
func readStat(path string) (pid, parent int, ticks int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0, err
	}
	// The name, in brackets, may hold anything.
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < 0 {
		return 0, 0, 0, &fs.PathError{Op: "read", Path: path, Err: errStat}
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(text[:open]))); err != nil {
		return 0, 0, 0, err
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 15 {
		return 0, 0, 0, &fs.PathError{Op: "read", Path: path, Err: errStat}
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, 0, err
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, 0, err
		}
		ticks += n
	}
	return pid, parent, ticks, nil
}

// ResidentBytes is the memory of a process, and the most that it has been.
func ResidentBytes(pid int) (now, most int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kilobytes); err == nil {
			now = kilobytes << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); err == nil {
			most = kilobytes << 10
		}
	}
	return now, most, nil
}
