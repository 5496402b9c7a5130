package pubsubsource_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

type (
	newEvents = []eventqueue.NewEvent
	emitted   = []eventqueue.Emitted
)

// on is a rig on a server with messages, and a source of it that runs.
func on(t *testing.T, s *server, middleware ...eventqueue.EmitMiddleware) *rig {
	t.Helper()
	r := &rig{t: t, server: s.address, pool: testenv.Pool(t)}
	core, logs := observer.New(zap.DebugLevel)
	r.log, r.logs = zap.New(core), logs
	// No event can be made of 666.
	if _, err := r.pool.Exec(testenv.Context(t), `ALTER TABLE events_v2 ADD CHECK (value <> '666')`); err != nil {
		t.Fatal(err)
	}
	r.queue = newQueue(t, r.pool, middleware...)
	r.run(r.source(r.queue, r.config("projects/p/subscriptions/orders")))
	return r
}

// refusing is a middleware that answers with an error what has the value 777.
func refusing(refuse func(ctx context.Context, events newEvents, next eventqueue.EmitFunc) error) eventqueue.EmitMiddleware {
	return func(ctx context.Context, events newEvents, next eventqueue.EmitFunc) (emitted, error) {
		if slices.ContainsFunc(events, func(e eventqueue.NewEvent) bool { return string(e.Value) == "777" }) {
			if err := refuse(ctx, events, next); err != nil {
				return nil, err
			}
		}
		return next(ctx, events)
	}
}

func retired(context.Context, newEvents, eventqueue.EmitFunc) error { return errors.New("retired") }

// keyed is a message with an ordering key.
func keyed(key, data string) *pubsubpb.PubsubMessage {
	return &pubsubpb.PubsubMessage{Data: []byte(data), OrderingKey: key}
}

// TestRefusedMessageHoldsUpThoseBehindItOfItsKey, whoever refuses it, until it goes to the dead-letter topic; if the subscription orders
// messages, and no others.
func TestRefusedMessageHoldsUpThoseBehindItOfItsKey(t *testing.T) {
	t.Parallel()
	for bad, by := range map[string]string{"bad": "the queue", "666": "the database", "777": "a middleware"} {
		for _, ordered := range []bool{true, false} {
			name := by + ", unordered"
			want := map[string]int{bad: 3}
			if ordered {
				name, want = by+", ordered", map[string]int{bad: 3, "3": 2, "6": 2}
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, ordered, keyed("k", "1"), keyed("k", bad), keyed("other", "2"), keyed("k", "3"), keyed("", "4"), keyed("other", "5"), keyed("k", "6"))
				r := on(t, s, refusing(retired))
				if back := s.givenBack(t); !maps.Equal(back, want) {
					t.Errorf("these were given back: %v, want %v", back, want)
				}
				if n := r.count(`SELECT count(*) FROM events_v2 WHERE value IN ('1', '2', '3', '4', '5', '6')`); n != 6 {
					t.Errorf("%d events, want 6", n)
				}
			})
		}
	}
}

// TestOrderOutlastsARefusalThatPasses: a message that is refused for a while is emitted before those behind it.
func TestOrderOutlastsARefusalThatPasses(t *testing.T) {
	t.Parallel()
	s := newServer(t, true, keyed("k", "1"), keyed("k", "777"), keyed("k", "2"), keyed("", "777"), keyed("", "3"))
	r := on(t, s, refusing(func(context.Context, newEvents, eventqueue.EmitFunc) error {
		if s.times("2") < 1 {
			return errors.New("not yet")
		}
		return nil
	}))
	if back := s.givenBack(t); back["1"] != 0 || back["2"] != 1 || back["3"] != 0 {
		t.Errorf("these were given back: %v", back)
	}
	if n := r.count(`SELECT count(*) FROM events_v2 AS a JOIN events_v2 AS b USING (ordering_key)
		WHERE ordering_key = 'k' AND a.id < b.id AND (a.value, b.value) IN (('1', '777'), ('777', '2'))`); n != 2 {
		t.Errorf("%d of 2 pairs of events are in the order of their messages", n)
	}
}

// TestIndexOfAMiddlewareIsNotBelieved: only what it refuses alone is given back.
func TestIndexOfAMiddlewareIsNotBelieved(t *testing.T) {
	t.Parallel()
	at := func(index int) *eventqueue.InvalidError {
		return &eventqueue.InvalidError{Index: index, Field: "value", Problem: "is retired"}
	}
	for name, refuse := range map[string]func(ctx context.Context, events newEvents, next eventqueue.EmitFunc) error{
		"the first": func(context.Context, newEvents, eventqueue.EmitFunc) error { return at(0) },
		"beyond":    func(context.Context, newEvents, eventqueue.EmitFunc) error { return at(1000) },
		"negative":  func(context.Context, newEvents, eventqueue.EmitFunc) error { return at(-1) },
		"after its try": func(ctx context.Context, events newEvents, next eventqueue.EmitFunc) error {
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := next(canceled, events); err == nil {
				return errors.New("it was emitted")
			}
			return at(1000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, false, append(append(orders(0, 5), keyed("", "777")), orders(5, 10)...)...)
			r := on(t, s, refusing(refuse))
			if back := s.givenBack(t); !maps.Equal(back, map[string]int{"777": 3}) {
				t.Errorf("these were given back: %v", back)
			}
			if n := r.count(`SELECT count(*) FROM events_v2`); n != 10 {
				t.Errorf("%d events", n)
			}
		})
	}
}
