package eventctl

import (
	"bufio"
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// counted has a busy handler and a failing one in the current minute, and what nobody has room for.
func (c *cli) counted() {
	c.t.Helper()
	c.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, waits, runs, pending, oldest_due)
		SELECT date_trunc('minute', clock_timestamp(), 'UTC'), m.* FROM (VALUES
			($1::uuid, 'WORKER', 'greet', 120, 100, 0, 0, '{90,10}'::bigint[], '{0,0,100}'::bigint[], 20, interval '95 seconds'),
			($1, 'WORKER', E'mail\x1b[2J', 1, 0, 1, 4, '{5}', '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,5}', NULL, NULL),
			('00000000-0000-0000-0000-000000000000', 'WORKER', 'greet', 7, 7, 0, 0, '{7}', '{7}', NULL, NULL)) AS m`, canvasA)
}

var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// atOneTime has the same time for all that there is.
func (r result) atOneTime() result {
	r.out = stamp.ReplaceAllString(r.out, "2026-01-02T03:04:00Z")
	return r
}

// TestStatsPrintCountsOfMinutes: the busiest handlers come first in top, and all are in stats --since.
func TestStatsPrintCountsOfMinutes(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("top").is(exitOK, "no counts in this time\n", "")
	c.counted()
	c.run("top").is(exitOK, "", "").atOneTime().golden("top")
	c.run("top", "--limit", "1", "--json").is(exitOK, `"emitted":120`, "")
	c.run("stats", "--since", "10m").is(exitOK, "", "").atOneTime().golden("stats_since")
	var doc view.Page[view.Counts]
	c.run("stats", "--since", "100h", "--canvas", canvasA, "--json").is(exitOK, "", "").into(&doc)
	if len(doc.Items) != 2 {
		t.Fatalf("the canvas has %+v", doc.Items)
	}
	greet := doc.Items[0]
	if greet.Completed != 100 || greet.Pending == nil || *greet.Pending != 20 || greet.OldestDue == nil || *greet.OldestDue != 95 || greet.RunP50 == nil {
		t.Errorf("greet has %+v", greet)
	}
	if greet.CountedAt == nil || !greet.CountedAt.Equal(greet.CountedAt.Truncate(time.Minute)) {
		t.Errorf("what is pending of greet was counted at %s", greet.CountedAt)
	}
	if mail := doc.Items[1]; mail.Pending != nil || mail.OldestDue != nil || mail.Failed != 1 {
		t.Errorf("mail has %+v", mail)
	}
	c.run("top", "--since", "30s").is(exitBadInput, "", "--since must be at least 1m")
	c.run("top", "--every", "1ms").is(exitBadInput, "", "--every must be at least 1s")
}

// TestTopRedrawsATerminal: it is drawn anew, within the size of the terminal, until it is interrupted, and
// then ends without an error.
func TestTopRedrawsATerminal(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.counted()
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	const columns, lines = 60, 6
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: lines, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(c.ctx)
	defer interrupt()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- Run(ctx, []string{"top", "--every", "1s"}, c.env, strings.NewReader(""), terminal, &stderr)
		_ = terminal.Close() // after which nothing more can be read
	}()
	var frames [][]string // by line
	for scanner := bufio.NewScanner(screen); scanner.Scan(); {
		line, first := strings.CutPrefix(scanner.Text(), printing.ClearScreen)
		if first {
			frames = append(frames, nil)
		}
		if len(frames) == 3 {
			interrupt()
			continue
		}
		if len(frames) == 0 {
			t.Fatalf("the screen was not cleared before %q", line)
		}
		last := len(frames) - 1
		frames[last] = append(frames[last], strings.TrimSuffix(line, "\r"))
	}
	if status := <-ended; status != exitOK || stderr.Len() != 0 {
		t.Errorf("interrupted, it ended with %d: %s", status, &stderr)
	}
	if len(frames) != 3 {
		t.Fatalf("it drew %d times", len(frames))
	}
	for _, frame := range frames[:2] {
		if len(frame) != lines-1 || !strings.Contains(frame[0], "last 5m0s: 3 handlers, 128 emitted") || !strings.Contains(frame[3], canvasA) {
			t.Errorf("%d lines were drawn:\n%s", len(frame), strings.Join(frame, "\n"))
		}
		for _, line := range frame {
			if len(line) > columns {
				t.Errorf("a line has %d columns of %d: %s", len(line), columns, line)
			}
		}
	}
}
