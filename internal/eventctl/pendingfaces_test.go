package eventctl

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/view"
	"eventsv2/test/testenv"
)

// accepting is a notifier that takes every notification.
type accepting struct{}

func (accepting) Publish(context.Context, []eventqueue.Notification) error { return nil }

// relayLogs runs a relay until it has logged the line of a minute, and returns what that says is pending.
func (c *cli) relayLogs() string {
	c.t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	relay, err := maintenance.NewRelay(pgstore.New(c.pool), accepting{}, maintenance.RelayConfig{Logger: zap.New(core)})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	minutes := func() []observer.LoggedEntry { return logs.FilterMessage("runs of the last minute").All() }
	testenv.Eventually(c.t, "the relay logs the line of a minute", func() bool { return len(minutes()) > 0 })
	cancel()
	if err := <-ended; err != nil {
		c.t.Error(err)
	}
	return fmt.Sprint(minutes()[0].ContextMap()["pending"])
}

// pages returns what reads the pages of the dashboard as whoever may read everything.
func (c *cli) pages() func(path string) string {
	c.t.Helper()
	handler, err := dashboard.New(dashboard.Config{Store: pgstore.New(c.pool), Log: testenv.Logger(c.t),
		Identify: func(*http.Request) (access.Identity, error) {
			return access.Identity{Name: "test:ada", Grants: []access.Grant{{Verbs: []access.Verb{access.Read}}}, Key: "ada"}, nil
		}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(handler.Close)
	return func(path string) string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(c.ctx, http.MethodGet, path, http.NoBody))
		return w.Body.String()
	}
}

// What stands in the pages as pending, and after it when that was counted.
var (
	pendingTile = regexp.MustCompile(`<dt>Pending</dt>\s*<dd>([^<]*)</dd>\s*(<dd class="when">counted <time)?`)
	pendingCell = regexp.MustCompile(`data-h="Pending"( title="counted [^"]*")?>([^<]*)</td>`)
)

// TestEveryFaceAgreesOnWhatIsPending: log, eventctl, HTTP API and pages have the number that the relay has just counted, also when
// it is 0, and when that was.
func TestEveryFaceAgreesOnWhatIsPending(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ask, page := c.api(), c.pages()
	const of = "?canvas=" + canvasA + "&module=WORKER&name=greet"
	shown := func() map[string]string {
		pending := func(of view.Counts) string {
			if of.Pending == nil || of.CountedAt == nil {
				return "not counted"
			}
			return fmt.Sprint(*of.Pending)
		}
		faces := map[string]string{"log": c.relayLogs()}
		for name, words := range map[string]string{"top": "top --json", "stats of an hour": "stats --since 1h --json", "stats of days": "stats --since 100h --json"} {
			var list view.Page[view.Counts]
			c.run(strings.Fields(words)...).is(exitOK, "", "").into(&list)
			faces[name] = "no handler"
			if len(list.Items) == 1 {
				faces[name] = pending(list.Items[0])
			}
		}
		for name, per := range map[string]string{"API": "all", "API by minute": "minute"} {
			items := within(ask(http.MethodGet, "/stats?canvas_id="+canvasA+"&per="+per, ""), "items").([]any)
			slices.Reverse(items) // by time
			for _, item := range items {
				if n, counted := item.(map[string]any)["pending"]; counted && faces[name] == "" {
					faces[name] = fmt.Sprint(n)
				}
			}
		}
		for name, path := range map[string]string{"overview": "/", "overview of a canvas": "/?canvas=" + canvasA, "handler": "/handler" + of} {
			if tile := pendingTile.FindStringSubmatch(page(path)); tile != nil && tile[2] != "" {
				faces[name] = tile[1]
			}
		}
		if cell := pendingCell.FindStringSubmatch(page("/handlers")); cell != nil && cell[1] != "" {
			faces["handlers"] = cell[2]
		}
		return faces
	}
	all := func(pending string) map[string]string {
		faces := map[string]string{}
		for _, face := range []string{"log", "top", "stats of an hour", "stats of days", "API", "API by minute", "overview", "overview of a canvas", "handler", "handlers"} {
			faces[face] = pending
		}
		return faces
	}
	for i := range 3 {
		c.run(emitArgs(fmt.Sprint(i), "--no-notify")...).is(exitOK, "", "")
	}
	c.exec(`UPDATE events_v2 SET enqueued_at = enqueued_at - interval '10 s', delay_until = delay_until - interval '10 s'`)
	if diff := cmp.Diff(all("3"), shown()); diff != "" {
		t.Errorf("with three events:\n%s", diff)
	}
	c.exec(`DELETE FROM events_v2`)
	c.exec(`INSERT INTO event_minutes AS m (minute, canvas_id, module, name, completed)
		SELECT date_trunc('minute', clock_timestamp(), 'UTC') - n * interval '1 minute', $1, 'WORKER', 'greet', 3 FROM generate_series(0, 1) AS n
		ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET completed = 3`, canvasA)
	if diff := cmp.Diff(all("0"), shown()); diff != "" {
		t.Errorf("when all have ended:\n%s", diff)
	}
}
