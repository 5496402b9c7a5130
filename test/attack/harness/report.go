package harness

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Row is a row of a table in a report.
type Row = struct {
	What   string
	Number int
}

// Table is a table in Markdown, nothing without rows.
func Table(what, number string, rows []Row) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n|---|--:|\n", what, number)
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %d |\n", row.What, row.Number)
	}
	return b.String() + "\n"
}

// Rows are counts in the order of their names.
func Rows[What ~string](counts map[What]int) (rows []Row) {
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, Row{string(what), counts[what]})
	}
	return rows
}

// Where describes the machine and the servers of a run, for its report. What it cannot find out is
// reported as unknown.
func (d *Deployment) Where(ctx context.Context, pool *pgxpool.Pool) string {
	memory, kilobytes := "an unknown size", 0.0
	if _, err := fmt.Sscan(procValue("/proc/meminfo", "MemTotal"), &kilobytes); err == nil {
		memory = fmt.Sprintf("%.0f GiB", kilobytes/(1<<20))
	}
	version, fsync := "of an unknown version", "unknown"
	_ = pool.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('fsync')`).Scan(&version, &fsync)
	return fmt.Sprintf("%d cores (%s), memory of %s, %s/%s, %s; Postgres %s with fsync %s; the official Pub/Sub emulator %s",
		runtime.NumCPU(), procValue("/proc/cpuinfo", "model name"), memory, runtime.GOOS, runtime.GOARCH, runtime.Version(),
		version, fsync, emulatorVersion(d.Emulator.Origin))
}

// procValue finds the value after the first "name :" of a file.
func procValue(path, name string) string {
	if file, err := os.Open(path); err == nil {
		defer func() { _ = file.Close() }() // it was only read
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
				return strings.TrimSpace(value)
			}
		}
	}
	return "unknown"
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
