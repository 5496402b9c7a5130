package otelevents_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/worker"
	"eventsv2/otelevents"
	"eventsv2/service"
	"eventsv2/webhook"
)

var update = flag.Bool("update", false, "write the table in docs/telemetry.md")

var _ service.Observer = (*otelevents.Metrics)(nil)

// rig has the metrics of a program, as a reader and as Prometheus see them.
type rig struct {
	t        *testing.T
	metrics  *otelevents.Metrics
	reader   *sdkmetric.ManualReader
	registry *prometheus.Registry
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, reader: sdkmetric.NewManualReader(), registry: prometheus.NewRegistry()}
	scraped, err := prometheusexporter.New(prometheusexporter.WithRegisterer(r.registry), prometheusexporter.WithoutScopeInfo())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader), sdkmetric.WithReader(scraped))
	if r.metrics, err = otelevents.New(provider); err != nil {
		t.Fatal(err)
	}
	return r
}

// pending has waiting events by name, and counts how often it is read.
type pending struct {
	list []inspect.HandlerPending
	err  error
	read int
}

func (p *pending) HandlersPending(context.Context) ([]inspect.HandlerPending, error) {
	p.read++
	return p.list, p.err
}

func (p *pending) Runnable(context.Context, int) (int, error) { return 7, p.err }

func (p *pending) OldestPending(context.Context) (time.Duration, error) {
	return 3 * time.Second, p.err
}

func (p *pending) QueueUsage(context.Context) (usage, limit float64, err error) {
	return 0.125, 0.5, p.err
}

// observe has the connections and what is pending observed as well.
func (r *rig) observe(p *pending) {
	r.t.Helper()
	pool, err := pgxpool.New(r.t.Context(), "postgres://nobody@127.0.0.1:1/none") // which connects to nothing before it is used
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(pool.Close)
	for _, observe := range []func() (func() error, error){
		func() (func() error, error) { return r.metrics.ObservePool(pool) },
		func() (func() error, error) { return r.metrics.ObservePending(p) },
		func() (func() error, error) {
			return r.metrics.ObserveSlots(func() (worker.Slots, bool) { return worker.Slots{Of: 4, Busy: 3, Hung: 2}, p.err == nil })
		},
	} {
		stop, err := observe()
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() {
			if err := stop(); err != nil {
				r.t.Error(err)
			}
		})
	}
}

// everything has everything happen that is counted, with a handler.
func (r *rig) everything(module, name string) {
	scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{7}, Module: module, Name: name}
	r.metrics.Emitted(scope)
	for _, end := range []minutes.RunEnd{minutes.RunCompleted, minutes.RunFailed, minutes.RunRetried} {
		r.metrics.Ran(&minutes.CountedRun{Scope: scope, End: end, Waited: time.Second, Took: time.Millisecond})
	}
	for _, arrow := range machine.Arrows() {
		out := worker.Outcome{Label: arrow.Label, To: arrow.To, TakenOver: true}
		if slices.Contains([]machine.State{machine.Process, machine.RetryCheck, machine.Delete}, arrow.From) {
			out.Attempt = 1
		}
		r.metrics.Outcome(out)
	}
	r.metrics.Published(3, time.Millisecond, nil)
	r.metrics.Published(2, time.Millisecond, errors.New("down"))
	r.metrics.Relayed(maintenance.Relayed{Pending: 1, Lost: 1})
	r.metrics.Renewed(worker.Renewal{Claims: 2, Age: 20 * time.Second})
	for _, outcome := range webhook.Outcomes() {
		r.metrics.Received(webhook.Source{}, outcome, nil)
	}
	r.metrics.Refused("api", 401)
}

// collect returns the points of the counters and gauges by name and attributes.
func (r *rig) collect() map[string]float64 {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(r.t.Context(), &all); err != nil {
		r.t.Logf("collected with %v", err)
	}
	points := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(attributes attribute.Set, value float64) {
				points[m.Name+"{"+attributes.Encoded(attribute.DefaultEncoder())+"}"] = value
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Count))
				}
			}
		}
	}
	return points
}

// TestEventsAreCountedByReason: each outcome has its counter.
func TestEventsAreCountedByReason(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.observe(&pending{list: []inspect.HandlerPending{{Module: "M", Name: "a", Pending: 12, OldestDue: 90 * time.Second}}})
	r.everything("M", "a")
	points := r.collect()
	for point, want := range map[string]float64{
		"eventsv2.events.emitted{handler=M/a}":                   1,
		"eventsv2.events.claimed{}":                              1,
		"eventsv2.events.taken_over{}":                           1,
		"eventsv2.runs{end=completed,handler=M/a}":               1,
		"eventsv2.runs{end=failed,handler=M/a}":                  1,
		"eventsv2.runs{end=retried,handler=M/a}":                 1,
		"eventsv2.run.duration{handler=M/a}":                     3,
		"eventsv2.wait.duration{}":                               3,
		"eventsv2.notifications.requeued{reason=RetryAllowed}":   1,
		"eventsv2.notifications.requeued{reason=HandlerUnknown}": 1,
		"eventsv2.notifications.dropped{reason=Paused}":          1,
		"eventsv2.notifications.dropped{reason=EventMissing}":    1,
		"eventsv2.locks.lost{}":                                  3,
		"eventsv2.notifications.published{}":                     3,
		"eventsv2.notifications.failed{}":                        2,
		"eventsv2.publish.duration{}":                            2,
		"eventsv2.notifications.relayed{kind=lost}":              1,
		"eventsv2.events.pending{handler=M/a}":                   12,
		"eventsv2.events.oldest_due{handler=M/a}":                90,
		"eventsv2.pool.connections{state=used}":                  0,
		"eventsv2.events.runnable{}":                             7,
		"eventsv2.notifications.oldest_pending{}":                3,
		"eventsv2.locks.renewal.age{}":                           1,
		"eventsv2.webhooks.received{outcome=accepted}":           1,
		"eventsv2.access.refused{status=401,via=api}":            1,
		"eventsv2.webhooks.received{outcome=bad signature}":      1,
	} {
		if got, there := points[point]; !there || got != want {
			t.Errorf("%s is %v (there: %t), want %v", point, got, there, want)
		}
	}
	for point := range points {
		if strings.Contains(point, "dropped{reason=RetryAllowed") || strings.Contains(point, "dropped{reason=ExecutesToCompletion") {
			t.Errorf("%s was counted", point)
		}
	}
}

// TestNumberOfSeriesIsBounded, whatever the handlers are called, also for Prometheus, for which
// each bucket is a series; and the sums are right.
func TestNumberOfSeriesIsBounded(t *testing.T) {
	t.Parallel()
	const handlers, most = 300, 500
	r := newRig(t)
	waiting := &pending{}
	for n := range handlers {
		r.everything("M", fmt.Sprint("handler", n))
		waiting.list = append(waiting.list, inspect.HandlerPending{Module: "M", Name: fmt.Sprint("handler", n), Pending: 2, OldestDue: time.Duration(n) * time.Second})
	}
	r.observe(waiting)
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series++
			if h := m.GetHistogram(); h != nil {
				series += len(h.GetBucket()) + 2 // +Inf and the sum
			}
			for _, label := range m.GetLabel() {
				if strings.Contains(label.GetName(), "canvas") {
					t.Errorf("%s has the label %s", family.GetName(), label.GetName())
				}
			}
		}
	}
	if series > most || series < 300 {
		t.Errorf("%d series", series)
	}
	points := r.collect()
	if got := points["eventsv2.events.emitted{handler=other}"]; got != handlers-otelevents.MaxHandlers {
		t.Errorf("%v emits of other handlers", got)
	}
	if got := points["eventsv2.events.pending{handler=other}"]; got != 2*(handlers-otelevents.MaxHandlers) {
		t.Errorf("%v events of other handlers are pending", got)
	}
	if got := points["eventsv2.events.oldest_due{handler=other}"]; got != handlers-1 {
		t.Errorf("the oldest of other handlers is due for %v s", got)
	}
}

// TestPendingIsReadOnCollection, once in ten seconds, and at no other time.
func TestPendingIsReadOnCollection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		waiting := &pending{err: errors.New("down")}
		stop, err := r.metrics.ObservePending(waiting)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if waiting.read != 0 {
			t.Errorf("read %d times for nobody", waiting.read)
		}
		r.metrics.Emitted(eventqueue.Scope{Module: "M", Name: "a"})
		for range 5 {
			if points := r.collect(); points["eventsv2.events.emitted{handler=M/a}"] != 1 {
				t.Errorf("a database that is away takes the others with it: %v", points)
			}
		}
		if waiting.read != 1 {
			t.Errorf("read %d times in a moment", waiting.read)
		}
		time.Sleep(10 * time.Second)
		waiting.list, waiting.err = []inspect.HandlerPending{{Module: "M", Name: "a", Pending: 1}}, nil
		if points := r.collect(); points["eventsv2.events.pending{handler=M/a}"] != 1 || waiting.read != 2 {
			t.Errorf("read %d times: %v", waiting.read, points)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if r.collect(); waiting.read != 2 {
			t.Errorf("read %d times after the end", waiting.read)
		}
	})
}

// TestMetricsPageHasEachMetric: the table of docs/telemetry.md lists the instruments; -update writes it.
func TestMetricsPageHasEachMetric(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../docs/telemetry.md", "<!-- table -->\n", "<!-- end -->\n"
	r := newRig(t)
	r.observe(&pending{list: []inspect.HandlerPending{{Module: "M", Name: "a", Pending: 1}}})
	r.everything("M", "a")
	want := r.table()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opens := strings.Cut(string(text), begin)
	table, after, closes := strings.Cut(rest, end)
	switch {
	case !opens || !closes:
		t.Fatalf("%s lacks %q or %q", page, begin, end)
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case table != want:
		t.Errorf("%s is not what the instruments are: run go test ./otelevents -update. They are\n%s", page, want)
	}
}

// table is one row per instrument: its name for Prometheus is from the family with its description.
func (r *rig) table() string {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	names, kinds := map[string]string{}, map[string]string{}
	for _, family := range families {
		names[family.GetHelp()], kinds[family.GetHelp()] = family.GetName(), strings.ToLower(family.GetType().String())
	}
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
	metrics := all.ScopeMetrics[0].Metrics
	slices.SortFunc(metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
	table := "| metric | for Prometheus | kind | attributes | meaning |\n|---|---|---|---|---|\n"
	for _, m := range metrics {
		keys := map[string]bool{}
		for point := range r.collect() {
			name, attributes, _ := strings.Cut(strings.TrimSuffix(point, "}"), "{")
			for pair := range strings.SplitSeq(attributes, ",") {
				if key, _, ok := strings.Cut(pair, "="); ok && name == m.Name {
					keys["`"+key+"`"] = true
				}
			}
		}
		list := []string{}
		for key := range keys {
			list = append(list, key)
		}
		slices.Sort(list)
		table += fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |\n", m.Name, names[m.Description], kinds[m.Description], strings.Join(list, ", "), m.Description)
	}
	return table
}
