package setup_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/internal/setup"
)

// TestHealthCommandAsksTheLocalProgram: its exit status serves the health check of a container.
func TestHealthCommandAsksTheLocalProgram(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, "not ready: "+r.URL.Path, http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		port   string
		status int
		says   string
	}{
		"health":               {port, 0, "ok\n"},
		"health  ":             {"127.0.0.1:" + port, 0, "ok\n"},
		"health   ":            {"0.0.0.0:" + port, 0, "ok\n"},
		"health --ready":       {port, 1, "tool: not ready: /readyz\n"},
		"health x":             {port, 1, `tool: unknown command "x" for "tool health"` + "\n"},
		"health --ready=false": {"none", 1, "tool: PORT is"},
	} {
		root := &cobra.Command{Use: "tool"}
		root.AddCommand(setup.HealthCommand(map[string]string{"PORT": want.port}))
		var stdout, stderr strings.Builder
		status := setup.Execute(t.Context(), root, strings.Fields(args), &stdout, &stderr)
		if said := stdout.String() + stderr.String(); status != want.status || !strings.HasPrefix(said, want.says) {
			t.Errorf("%s: exit status %d, and it says %q; want %d and %q", args, status, said, want.status, want.says)
		}
	}
}

// TestHealthCommandFailsWithoutAProgram: as in a container whose program does not listen.
func TestHealthCommandFailsWithoutAProgram(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool"}
	root.AddCommand(setup.HealthCommand(map[string]string{"PORT": "1"}))
	var stdout, stderr strings.Builder
	if status := setup.Execute(t.Context(), root, []string{"health"}, &stdout, &stderr); status != 1 || !strings.Contains(stderr.String(), "does not answer") {
		t.Errorf("exit status %d, and it says %q", status, &stderr)
	}
}
