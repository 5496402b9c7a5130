package webserver_test

import (
	"net"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/internal/webserver"
)

// TestProfilesAreForThisMachine: whoever reaches them is let in.
func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	for address, served := range map[string]bool{"": true, "127.0.0.1:0": true, "localhost:0": true,
		":0": false, "0.0.0.0:0": false, "10.0.0.7:6060": false, "[::]:0": false} {
		err := webserver.ServeProfiles(t.Context(), map[string]string{"DATABASE_URL": "postgres://db", "NOTIFIER": "postgres", "PPROF_LISTEN": address}, zap.NewNop())
		if served != (err == nil) || err != nil && !strings.Contains(err.Error(), "PPROF_LISTEN "+address+" can be reached by others") {
			t.Errorf("on %q: %v", address, err)
		}
	}
}

// TestAProgramRunsWithoutItsProfiles: that another program has the address is a warning.
func TestAProgramRunsWithoutItsProfiles(t *testing.T) {
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
