package webserver_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/internal/webserver"
	"eventsv2/test/testenv"
)

// TestProfilesAreServedToThisMachineOnly: whoever reaches them is let in.
func TestProfilesAreServedToThisMachineOnly(t *testing.T) {
	t.Parallel()
	for address, served := range map[string]bool{"": true, "127.0.0.1:0": true, "localhost:0": true,
		":0": false, "0.0.0.0:0": false, "10.0.0.7:6060": false, "[::]:0": false} {
		err := webserver.ServeProfiles(t.Context(), map[string]string{"DATABASE_URL": "postgres://db", "NOTIFIER": "postgres", "PPROF_LISTEN": address}, zap.NewNop())
		if served != (err == nil) || err != nil && !strings.Contains(err.Error(), "PPROF_LISTEN "+address+" can be reached by others") {
			t.Errorf("on %q: %v", address, err)
		}
	}
}

// TestProgramRunsWithoutProfiles: that another program has the address is a warning.
func TestProgramRunsWithoutProfiles(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	core, logs := observer.New(zap.WarnLevel)
	if err := webserver.ServeProfiles(t.Context(), map[string]string{"DATABASE_URL": "postgres://db", "NOTIFIER": "postgres", "PPROF_LISTEN": taken.Addr().String()},
		zap.New(core)); err != nil || logs.FilterMessageSnippet("profiles are not served").Len() != 1 {
		t.Errorf("%v, %v", err, logs.All())
	}
}

// TestProfilesAreNotForPagesOfTheWeb, whose name may lead to this machine, or which request them as images.
func TestProfilesAreNotForPagesOfTheWeb(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	if err := webserver.ServeProfiles(t.Context(), map[string]string{"DATABASE_URL": "postgres://db", "NOTIFIER": "postgres", "PPROF_LISTEN": "127.0.0.1:0"}, zap.New(core)); err != nil {
		t.Fatal(err)
	}
	address, _ := logs.FilterMessage("profiles are served").All()[0].ContextMap()["address"].(string)
	for _, c := range []struct {
		host, site string
		want       int
	}{{"", "", 200}, {"localhost:6060", "none", 200}, {"[::1]:6060", "same-origin", 200}, {"evil.example", "", 421}, {"evil.example:6060", "same-origin", 421}, {"", "cross-site", 421}, {"", "same-site", 421}} {
		r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, "http://"+address+"/debug/pprof/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = w.Body.Close(); w.StatusCode != c.want {
			t.Errorf("host %q, %q: status %d, want %d", c.host, c.site, w.StatusCode, c.want)
		}
	}
}
