package otelevents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/worker"
	"eventsv2/webhook"
)

// Metrics counts what the parts of a program do: it is the Observer of a service.Config. It is safe for
// concurrent use.
type Metrics struct {
	instruments
	meter    metric.Meter
	handlers handlers
	reasons  map[machine.Label]metric.MeasurementOption
	kinds    struct{ pending, lost metric.MeasurementOption }
	outcomes map[webhook.Outcome]metric.MeasurementOption
}

// New makes the instruments of a provider.
func New(provider metric.MeterProvider) (*Metrics, error) {
	if provider == nil {
		return nil, errors.New("otelevents.New: provider must not be nil")
	}
	m := &Metrics{meter: provider.Meter(Scope), reasons: map[machine.Label]metric.MeasurementOption{}, outcomes: map[webhook.Outcome]metric.MeasurementOption{}}
	var err error
	if m.instruments, err = newInstruments(m.meter); err != nil {
		return nil, fmt.Errorf("otelevents.New: %w", err)
	}
	for _, arrow := range machine.Arrows() {
		m.reasons[arrow.Label] = with(attribute.String("reason", string(arrow.Label)))
	}
	for _, outcome := range webhook.Outcomes() {
		m.outcomes[outcome] = with(attribute.String("outcome", string(outcome)))
	}
	for _, via := range []string{"api", "dashboard"} { // a series that begins with its first refusal hides that one from rates
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			m.refused.Add(background, 0, refusedBy(via, status))
		}
	}
	m.kinds.pending, m.kinds.lost = with(attribute.String("kind", "pending")), with(attribute.String("kind", "lost"))
	return m, nil
}

// with is an option that is made once: to make one costs as much as what it is used for.
func with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// What is counted belongs to no request, so no context is of use to the instruments.
var background = context.Background()

// Emitted counts a new event.
func (m *Metrics) Emitted(scope eventqueue.Scope) {
	m.emitted.Add(background, 1, m.handlers.of(scope.Module, scope.Name).itself)
}

// Ran counts a run whose end was written.
func (m *Metrics) Ran(run *minutes.CountedRun) {
	h := m.handlers.of(run.Module, run.Name)
	m.runs.Add(background, 1, h.ends[run.End])
	m.runTime.Record(background, run.Took.Seconds(), h.itself)
	m.waitTime.Record(background, max(run.Waited, 0).Seconds())
}

// Outcome counts what the worker has done with a notification.
func (m *Metrics) Outcome(out worker.Outcome) {
	switch {
	case out.Label == machine.Claimed:
		m.claimed.Add(background, 1)
		if out.TakenOver {
			m.takenOver.Add(background, 1)
		}
	case out.Label == machine.LockLost:
		m.locksLost.Add(background, 1)
	case out.To == machine.Queue:
		m.requeued.Add(background, 1, m.reasons[out.Label])
	case out.Attempt == 0: // it did not run
		m.dropped.Add(background, 1, m.reasons[out.Label])
	}
}

// Published counts a request that published notifications.
func (m *Metrics) Published(notifications int, took time.Duration, err error) {
	count := m.published
	if err != nil {
		count = m.publishFailed
	}
	count.Add(background, int64(notifications))
	m.publishTime.Record(background, took.Seconds())
}

// Relayed counts what the relay has published.
func (m *Metrics) Relayed(relayed maintenance.Relayed) {
	m.relayed.Add(background, int64(relayed.Pending), m.kinds.pending)
	m.relayed.Add(background, int64(relayed.Lost), m.kinds.lost)
}

// Renewed records how old locks had become when they were renewed.
func (m *Metrics) Renewed(renewal worker.Renewal) {
	m.renewals.Record(background, renewal.Age.Seconds())
}

// Received counts a request to a source of webhooks.
func (m *Metrics) Received(_ webhook.Source, outcome webhook.Outcome, _ error) {
	m.received.Add(background, 1, m.outcomes[outcome])
}

// Refused counts a request of an operator that was refused.
func (m *Metrics) Refused(via string, status int) {
	m.refused.Add(background, 1, refusedBy(via, status))
}

func refusedBy(via string, status int) metric.MeasurementOption {
	return with(attribute.String("via", via), attribute.Int("status", status))
}
