package e2e_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

// standsStill is how long a loop may stand still before /healthz names it.
const standsStill = 30 * time.Second

// stallsAt matches the answer of /healthz of a program that cannot log that a run has failed. Which loop it names
// depends on which comes to write the line for which there is no room: on a busy machine it may be the one that
// claims.
const stallsAt = "has not gone round for"

// stuckLog is a log that takes nothing more until it is let.
type stuckLog struct {
	*lines
	let chan struct{} // nil: it takes everything
	mu  sync.RWMutex
}

func (l *stuckLog) Write(line []byte) (int, error) {
	l.mu.RLock()
	let := l.let
	l.mu.RUnlock()
	if let != nil {
		<-let
	}
	return l.lines.Write(line)
}

func (l *stuckLog) stick() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.let = make(chan struct{})
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.let)
		l.let = nil
	})
}

// TestStalledEmbeddingProgramIsNotAlive: its log takes no more lines, so that its loops stand still in
// the middle of one, as in a debugger. The program is built as the documentation shows, and mounts Service.Health on
// a server of its own; /healthz says so, though it has no log to say it in either.
func TestStalledEmbeddingProgramIsNotAlive(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, standsStill)
	r := newRig(t)
	log := &stuckLog{lines: newLines()}
	app := r.embed(log.lines, func(c *service.Config) {
		c.LockTimeout = time.Second
		c.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.InfoLevel))
	})
	health, err := app.Health()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(health)
	t.Cleanup(server.Close)
	healthz := func() (status int, text string) {
		t.Helper()
		response, err := server.Client().Get(server.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if err := app.Register(eventqueue.HandlerKey{Name: "broken"}, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error {
		return errors.New("out of order")
	}), eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{}, 1)
	app.run(func(*eventqueue.Run) { ran <- struct{}{} })
	r.emit(event("greet", `1`))
	<-ran // it works
	release := log.stick()
	t.Cleanup(release)
	r.emit(event("broken", `1`))
	testenv.Eventually(t, "/healthz names the loop that stands still", func() bool {
		status, text := healthz()
		return status == http.StatusServiceUnavailable && strings.Contains(text, stallsAt) && app.Alive() != nil
	})
	release()
	log.await(t, "a loop of the program does not go round: restart the program")
	testenv.Eventually(t, "/healthz is well again", func() bool {
		status, _ := healthz()
		return status == http.StatusOK
	})
}

// TestWorkerWithABlockedLogIsNotAlive: the standard error of the built worker is a pipe, as under every
// supervisor, and its reader stops reading. Soon the pipe is full, and each loop that has something to log stands
// still in a system call, as a debugger would hold it; the others, and the server of /healthz, go on.
func TestWorkerWithABlockedLogIsNotAlive(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, standsStill)
	r := newRig(t, "greet", "broken")
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/broken" { // 64 KiB, the size of a pipe, are soon full of this
			http.Error(w, strings.Repeat("no such order; ", 100), http.StatusUnprocessableEntity)
		}
	})
	log := &stuckLog{lines: newLines()}
	// On a busy machine locks of a second are lost while loops stand still: a relay finds what nobody is notified of.
	r.start("cron", map[string]string{"LOCK_TIMEOUT": "1s"}).await("relay started")
	worker := r.startPiped("worker", map[string]string{"LOG_LEVEL": "info", "LOCK_TIMEOUT": "1s"}, log)
	log.await(t, "worker started")
	address := addressIn(t, log.String())
	healthz := func() (status int, text string) {
		t.Helper()
		return pageAt(t, address+"/healthz")
	}
	r.emit(event("greet", `1`))
	r.target.await(t, 1) // it works
	if status, text := healthz(); status != http.StatusOK {
		t.Fatalf("/healthz answers %d %s", status, text)
	}

	release := log.stick()
	t.Cleanup(release)
	broken := make([]eventqueue.NewEvent, 500)
	for i := range broken {
		broken[i] = event("broken", `1`)
	}
	r.emit(broken...)
	var said string
	t.Cleanup(func() {
		if t.Failed() {
			release()
			worker.Signal(syscall.SIGQUIT)
			<-worker.Exited
			_, stacks, _ := strings.Cut(log.String(), "SIGQUIT: quit")
			t.Logf("/healthz said: %s\nthe worker's goroutines:\n%s", said, stacks)
		}
	})
	testenv.Eventually(t, "/healthz names the loop that stands still", func() bool {
		var status int
		status, said = healthz()
		return status == http.StatusServiceUnavailable && strings.Contains(said, stallsAt)
	})

	release()
	log.await(t, "a loop of the program does not go round: restart the program")
	testenv.Eventually(t, "/healthz is well again", func() bool {
		status, _ := healthz()
		return status == http.StatusOK
	})
	r.awaitSQL("each of them is FAILED", `SELECT count(*) = $1 FROM event_log WHERE status = 'FAILED'`, len(broken))
	worker.Signal(syscall.SIGTERM)
	<-worker.Exited
	if worker.Status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", worker.Status)
	}
}

// startPiped starts a program that logs to a pipe, which is read for as long as log takes what was read.
func (r *rig) startPiped(name string, change map[string]string, log io.Writer) *programs.Process {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // for reading alone, this would wait for who writes
	if err != nil {
		r.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(log, pipe) // ends when the pipe is closed
	}()
	r.t.Cleanup(func() { _ = pipe.Close(); <-read })
	started, err := programs.Start(programs.Program{Name: name, Path: filepath.Join(binaries, name), Env: r.env(change), Log: path})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(started.Kill)
	return started
}
