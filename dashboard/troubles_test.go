package dashboard_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"strings"
	"testing"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// connected shows a worker with handlers of every canvas, and a relay, as connected until the test ends.
func (q *queue) connected(handlers ...string) *queue {
	q.t.Helper()
	ctx := testenv.Context(q.t)
	conn, err := q.store.Pool().Acquire(ctx)
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(conn.Release)
	list := ""
	for _, name := range handlers {
		list += `,{"module":"WORKER","name":"` + name + `","modifier":"_"}`
	}
	q.exec(`INSERT INTO event_workers (number, host, pid, version, handlers) VALUES (11, 'worker-11', 1, 'v1', $1)`, "["+strings.TrimPrefix(list, ",")+"]")
	for _, sql := range []string{pgsession.ShowRelaySQL, `SELECT pg_try_advisory_lock_shared(` + pgsession.WorkerLockClass + `, 11)`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			q.t.Fatal(err)
		}
	}
	return q
}

// minute has counts of a handler on the seeded canvas, some minutes ago: what completed, what was retried, and for
// how long something had been due; an empty text is nothing.
func (q *queue) minute(name string, ago, completed, retried int, due string) {
	q.t.Helper()
	q.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, retried, pending, oldest_due)
		VALUES (date_trunc('minute', now()) - $1 * interval '1 minute', $2, 'WORKER', $3, 1, $4, $5, 3, nullif($6, '')::interval)`,
		ago, [16]byte(seeded.Canvas), name, completed, retried, due)
}

// The first page says in words what is wrong, and leads to the page that helps.
func TestOverviewNamesTroubles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(q *queue)
		wants   []string
		lacks   []string
	}{
		"nothing": {
			func(q *queue) { q.connected("send_invoice"); q.minute("send_invoice", 1, 5, 2, "") },
			[]string{"Nothing seems wrong."}, []string{"What needs attention"},
		},
		"an idle queue": {
			func(q *queue) {
				q.connected("send_invoice")
				q.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, pending) VALUES (date_trunc('minute', now()) - interval '30 minutes', $1, 'WORKER', 'send_invoice', 1, 1, 0)`, [16]byte(seeded.Canvas))
			},
			[]string{"Nothing seems wrong.", "none due", `data-name="pending" data-values="0|0|0`}, []string{"gaps: not counted"},
		},
		"no relay": {
			func(q *queue) { q.minute("send_invoice", 1, 5, 0, "") },
			[]string{"No worker is connected", "No relay is connected", "Start cmd/cron"}, nil,
		},
		"no worker with the handler": {
			func(q *queue) {
				q.connected("other")
				q.minute("other", 1, 5, 0, "")
				q.minute("send_invoice", 1, 0, 0, "90 seconds")
			},
			[]string{"No live worker has the handler WORKER / send_invoice: its oldest event has been due for 1m30s.", `/events?canvas=` + seeded.Canvas.String() + `&module=WORKER&name=send_invoice`},
			[]string{"No run has ended", "The oldest event"},
		},
		"all runs fail": {
			func(q *queue) {
				q.connected("send_invoice", "other")
				q.minute("other", 1, 1, 30, "")
				for ago := 1; ago <= 4; ago++ {
					q.minute("send_invoice", ago, 0, 10, "")
				}
			},
			[]string{"Handler WORKER / send_invoice: 40 of 40 runs failed in the last 10 minutes.", `/handler?canvas=` + seeded.Canvas.String()}, []string{"other: "},
		},
		"it grows": {
			func(q *queue) {
				q.connected("send_invoice")
				for ago := 1; ago <= 4; ago++ {
					q.minute("send_invoice", ago, 10, 0, (map[int]string{1: "4 minutes", 2: "3 minutes", 3: "2 minutes", 4: "65 seconds"})[ago])
				}
			},
			[]string{"The oldest event that may run has been due for 4m0s, and no worker runs it; 3m0s before it was 1m5s."}, []string{"No run has ended"},
		},
		"nothing runs": {
			func(q *queue) {
				q.connected("send_invoice")
				q.minute("send_invoice", 9, 5, 0, "")
				q.minute("send_invoice", 1, 0, 0, "7 minutes")
				q.insert(eventqueue.NewEvent{Canvas: seeded.Canvas, Module: "WORKER", Name: "send_invoice", Modifier: "loud" + "<b>", Value: []byte(`1`)})
			},
			[]string{"No run has ended for ", "although an event of WORKER / send_invoice has been due for 7m0s.", "No live worker, of which there are 1, has its handler WORKER/send_invoice/loud<b>", `href="/events/1"`}, []string{"an hour or longer"},
		},
		"nothing runs, and nobody knows why": {
			func(q *queue) { q.connected("send_invoice"); q.minute("send_invoice", 1, 0, 0, "7 minutes") },
			[]string{"No run has ended for an hour or longer", "/events?canvas="}, nil,
		},
		"what is paused is not late": {
			func(q *queue) {
				q.connected()
				q.minute("send_invoice", 1, 0, 0, "70 minutes")
				if _, err := q.store.AddRule(testenv.Context(q.t), operate.RuleOf(operate.PauseRule, seeded)); err != nil {
					q.t.Fatal(err)
				}
			},
			[]string{"1 pause or block holds events back."}, []string{"No run has ended", "The oldest event", "No live worker"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			test.prepare(q)
			w := get(t, q.dashboard(dashboard.Config{}), "/")
			body := html.UnescapeString(w.Body.String())
			if w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
			for _, want := range test.wants {
				if !strings.Contains(body, want) {
					t.Errorf("it does not say %q:\n%s", want, mainPart(body))
				}
			}
			for _, word := range append(test.lacks, "<b>,") {
				if strings.Contains(w.Body.String(), word) {
					t.Errorf("it says %q:\n%s", word, mainPart(body))
				}
			}
		})
	}
}

// Who may read one canvas sees what is wrong there, and no link to a page that they may not see.
func TestOverviewOfACanvasNamesItsTroublesOnly(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.minute("send_invoice", 1, 0, 7, "90 minutes")
	see := func(canvas eventqueue.CanvasID) string {
		w := get(t, q.dashboard(dashboard.Config{Identify: as(access.Grant{Canvases: []eventqueue.CanvasID{canvas}, Verbs: []access.Verb{access.Read}})}), "/")
		return w.Body.String()
	}
	if body := see(seeded.Canvas); !strings.Contains(body, "7 of 7 runs failed") || !strings.Contains(body, "No relay is connected") || strings.Contains(body, "See the workers") {
		t.Errorf("the canvas: %s", mainPart(body))
	}
	if body := see(elsewhere); strings.Contains(body, "send_invoice") || strings.Contains(body, "90") {
		t.Errorf("another canvas: %s", mainPart(body))
	}
}

// The overview's number of what has failed, and that of the page to which it leads, are those of what workers have given up.
func TestOverviewAgreesWithPageOfFailures(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	r, noRetries := rig.NewOn(t, q.store.Pool()), 0
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		if string(run.Value) == "0" {
			return nil
		}
		return errors.New("card " + string(run.Value) + " was refused")
	}, eventqueue.Policy{MaxRetries: &noRetries})
	for _, value := range []string{"0", "1", "2", "3", "0"} {
		r.Emit(r.Event(value))
	}
	stop := r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.RetryTooMany, 3)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	stop() // which hands in the last counts
	pages := q.dashboard(dashboard.Config{})
	const path = "/failed?within=1"
	if body := get(t, pages, "/").Body.String(); !strings.Contains(body, "3 events failed for good in the last hour.") || !strings.Contains(body, path) {
		t.Errorf("the overview does not say what has failed:\n%s", body)
	}
	if body := get(t, pages, path).Body.String(); !strings.Contains(body, "<strong>3 failed events</strong>") {
		t.Errorf("the page has another number:\n%s", body)
	}
}
