package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// host is where a run took place, for its report.
type host struct {
	cores    int
	memory   string
	system   string
	goes     string
	postgres string
	fsync    string
	emulator string
}

// describeHost finds out what it can; what it cannot is said to be unknown.
func describeHost(ctx context.Context, pool *pgxpool.Pool, emulatorOrigin string) host {
	h := host{cores: runtime.NumCPU(), memory: memory(), system: runtime.GOOS + "/" + runtime.GOARCH, goes: runtime.Version(),
		postgres: "unknown", fsync: "unknown", emulator: emulatorVersion(emulatorOrigin)}
	// A report without these is still a report.
	_ = pool.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('fsync')`).Scan(&h.postgres, &h.fsync)
	return h
}

// memory is the size of the machine's memory.
func memory() string {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "unknown"
	}
	var kilobytes int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kilobytes); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.0f GiB", float64(kilobytes)/(1<<20))
}

// emulatorVersion is in the name of a file that stands beside the emulator's
// start script, with which its origin ends.
func emulatorVersion(origin string) string {
	script := origin[strings.LastIndex(origin, " ")+1:]
	jars, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(script)), "lib", "cloud-pubsub-emulator-*-all.jar"))
	if err != nil || len(jars) != 1 {
		return "of an unknown version"
	}
	name := strings.TrimPrefix(filepath.Base(jars[0]), "cloud-pubsub-emulator-")
	return strings.TrimSuffix(name, "-all.jar")
}

// String is the host in the report.
func (h host) String() string {
	return fmt.Sprintf("%d cores, %s of memory, %s, %s; Postgres %s with fsync %s; the official Pub/Sub emulator %s",
		h.cores, h.memory, h.system, h.goes, h.postgres, h.fsync, h.emulator)
}
