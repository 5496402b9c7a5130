package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryLineOfTheLogIsJSON, also what libraries say with Go's own log package: here
// Go's HTTP client, to which a target speaks without having been asked.
func TestEveryLineOfTheLogIsJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, "talks")
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		connection, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nand another thing")
		_ = buffer.Flush()
		_ = connection.Close()
	})
	worker := r.start("worker", nil)
	worker.await("worker started")
	// The client says it when it reads the rest after the connection has become idle.
	for range 20 {
		r.emit(event("talks", `1`))
	}
	worker.await("Unsolicited response")
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(worker.text()), "\n") {
		var fields struct{ Severity, Message, Time string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Severity == "" || fields.Message == "" || fields.Time == "" {
			t.Errorf("not a line of our log: %s", line)
		}
	}
}

// TestMistakesInAHandlersFileAreBounded: the first of them and how many more there are.
func TestMistakesInAHandlersFileAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "build")
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	if err := os.WriteFile(path, []byte("handlers: ["+strings.Repeat("1,", 500_000)+"1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := r.start("worker", map[string]string{"HANDLERS_FILE": path})
	status, text := worker.wait(), worker.text()
	if status == 0 || len(text) > 100_000 || !strings.Contains(text, "499901 mistakes more") {
		t.Errorf("status %d, %d bytes: %.300s", status, len(text), text)
	}
}
