package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// withWebhooks starts a worker with a source of GitHub's scheme, whose secret is hush,
// and returns the address that it serves on.
func (r *rig) withWebhooks() (worker *program, address string) {
	r.t.Helper()
	handlers, err := os.ReadFile(r.environment["HANDLERS_FILE"])
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.t.TempDir(), "handlers.yaml")
	text := string(handlers) + "webhooks:\n  - {source: github, scheme: github, secrets: [SECRET], module: WORKER, modifier: _, names: {push: build}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	worker = r.start("worker", map[string]string{"HANDLERS_FILE": path, "SECRET": "hush"})
	worker.await("worker started")
	port := regexp.MustCompile(`"address":"[^"]*:(\d+)"`).FindStringSubmatch(worker.text())
	if port == nil {
		r.t.Fatalf("the log names no address:\n%s", worker.text())
	}
	return worker, "127.0.0.1:" + port[1]
}

// deliver posts a genuine push and returns the status of the answer.
func deliver(t *testing.T, address, body string) (status int) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte("hush"))
	_, _ = mac.Write([]byte(body))
	request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodPost, "http://"+address+"/webhooks/"+canvas.String()+"/github", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	request.Header.Set("X-GitHub-Delivery", "1")
	request.Header.Set("X-GitHub-Event", "push")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0 // cut off: the sender tries again
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestFloodBeforeAuthenticationIsBounded: thousands who prove nothing hold bodies and headers
// back. The worker's memory stays small, it answers health checks, and who signs is served.
func TestFloodBeforeAuthenticationIsBounded(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		testenv.Missing(t, "the memory of a process is read from /proc")
	}
	const stalled, headers, bodyBytes, mostMiB = 2000, 1000, 256 << 10, 200
	r := newRig(t, "build")
	worker, address := r.withWebhooks()
	body := bytes.Repeat([]byte("x"), bodyBytes-1) // one byte never comes
	path := "POST /webhooks/" + canvas.String() + "/github HTTP/1.1\r\nHost: x\r\n"
	half := append(fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n", path, bodyBytes), body...)
	header := append([]byte(path), bytes.Repeat([]byte("X-Hub-Signature-256: sha256=00\r\n"), 30_000)...)
	var open []net.Conn
	defer func() {
		for _, connection := range open {
			_ = connection.Close()
		}
	}()
	var wait sync.WaitGroup
	atOnce := make(chan struct{}, 100)
	for i := range stalled + headers {
		connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, connection)
		what := half
		if i%3 == 2 {
			what = header
		}
		atOnce <- struct{}{}
		wait.Go(func() {
			defer func() { <-atOnce }()
			_, _ = connection.Write(what) // cut off, or not
		})
		if i%300 == 0 {
			healthy(t, address)
			accepted(t, address, fmt.Sprintf(`{"during": %d}`, i))
		}
	}
	wait.Wait()
	healthy(t, address)
	accepted(t, address, `{"after": "all"}`)
	if most := peakMiB(t, worker.PID); most >= mostMiB {
		t.Errorf("the worker took %d MiB, want less than %d", most, mostMiB)
	} else {
		t.Logf("the worker took %d MiB", most)
	}
	r.target.await(t, 11)
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
}

func healthy(t *testing.T, address string) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %d", answer.StatusCode)
	}
}

// accepted has a request delivered as senders do: again after a 503 or a lost answer.
func accepted(t *testing.T, address, body string) {
	t.Helper()
	testenv.Eventually(t, body+" is accepted", func() bool {
		status := deliver(t, address, body)
		if status != http.StatusOK && status != http.StatusServiceUnavailable && status != 0 {
			t.Fatalf("a genuine request is answered with %d", status)
		}
		return status == http.StatusOK
	})
}

// peakMiB is the most memory that a process has ever had.
func peakMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("there is no VmHWM in\n%s", status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestMissingBodyIsCutOff is not waited for where nobody reads it, and for
// a bounded time where one does.
func TestMissingBodyIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, "build")
	_, address := r.withWebhooks()
	var wait sync.WaitGroup
	for path, want := range map[string]string{"/healthz": "405", "/readyz": "405", "/nothing": "404", "/webhooks/x": "404", "/webhooks/" + canvas.String() + "/github": "408"} {
		wait.Go(func() {
			connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = connection.Close() }()
			// Far more than any of the times that bound it.
			_ = connection.SetDeadline(time.Now().Add(2 * time.Minute))
			_, _ = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345", path)
			reader := bufio.NewReader(connection)
			line, err := reader.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want+" ") {
				t.Errorf("%s: %q, %v", path, line, err)
			}
			for err == nil {
				_, err = reader.ReadString('\n')
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the connection stays open", path)
			}
		})
	}
	wait.Wait()
}
