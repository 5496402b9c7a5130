package cleanup

import (
	"fmt"
	"testing"

	"eventsv2/eventqueue"
)

// killedAt publishes and is killed after a step, if there are so many. taken are
// the steps that there were.
func (r *rig) killedAt(step int, e eventqueue.Event, pub Publication) (taken []string, died bool) {
	r.Helper()
	k := &killer{DB: r.pool, at: step}
	run := r.claim(e)
	r.service.step = func() { k.step("service") }
	defer func() {
		r.service.step = nil
		switch p := recover(); p {
		case nil:
		case errKilled:
			taken, died = k.taken, true
		default:
			panic(p)
		}
	}()
	if _, err := (&Publications{k}).Publish(r.ctx, run, pub); err != nil {
		r.Fatalf("to be killed after step %d: %v", step, err)
	}
	return k.taken, false
}

// stage is a key with two old messages, one of them an intent whose event failed
// for good, beside other keys that nothing may happen to.
func (r *rig) stage(topic string) (key Key, check func()) {
	r.Helper()
	key = keyOf(r, Config{Key: topic}, nil)
	foreign := key
	foreign.Canvas[0]++
	beside := []Key{foreign, keyOf(r, Config{Key: topic, Inputs: []string{"to"}}, map[string]any{"to": "anna"}), keyOf(r, Config{Key: topic + " second"}, nil)}
	component := key
	component.Component = "mail"
	beside = append(beside, component)
	for _, other := range beside {
		r.published(other, "other")
	}
	failed := r.emit(key.Canvas)
	if taken, _ := r.killedAt(4, failed, r.publication(key, "unremembered")); len(r.service.texts(key)) != 1 {
		r.Fatalf("the event was to fail after it had sent: %v", taken)
	}
	r.end(failed)
	data, err := r.service.send(key, "", "old")
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.store.Put(r.ctx, key, Replace, data); err != nil {
		r.Fatal(err)
	}
	r.published(keyOf(r, Config{Key: topic + " third"}, nil), "other")
	return key, func() {
		r.Helper()
		for _, other := range beside {
			r.wantTexts(other, "other")
			r.wantRows(other)
		}
	}
}

// TestCrashAfterAnyStepLeavesNothingBehind kills the first run after every step that it has and the
// second one after every step of its own; then a third finishes. In the end
// there is one new message, sent once, the old ones are gone, and nothing else is.
func TestCrashAfterAnyStepLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	twice, died := 0, true
	for first := 1; died; first++ {
		again := true
		for second := 1; again; second++ {
			key, check := r.stage(fmt.Sprintf("%d then %d", first, second))
			event := r.emit(key.Canvas)
			pub := r.publication(key, "new")
			before := r.service.sent
			_, died = r.killedAt(first, event, pub)
			_, again = r.killedAt(second, event, pub)
			result, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub)
			if err != nil || string(result.Data) != r.service.ids(key)[0] {
				t.Fatalf("killed after %d and %d: %+v, %v", first, second, result, err)
			}
			if sent := r.service.sent - before; sent != 1 {
				t.Errorf("killed after %d and %d: sent %d times", first, second, sent)
			}
			r.end(event)
			r.wantTexts(key, "new")
			r.wantRows(key)
			check()
			twice++
		}
	}
	if twice < 60 {
		t.Errorf("only %d pairs of deaths", twice)
	}
}

// TestNextEventCleansUpAfterAKilledRun kills the only run after every step, and has the event end
// there. The next event of the key finds what it has left.
func TestNextEventCleansUpAfterAKilledRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	died := true
	for step := 1; died; step++ {
		key, check := r.stage(fmt.Sprint(step))
		event := r.emit(key.Canvas)
		_, died = r.killedAt(step, event, r.publication(key, "new"))
		r.end(event)
		result := r.published(key, "newer")
		if result.Repeat || len(result.Failed) > 0 {
			t.Errorf("killed after %d: %+v", step, result)
		}
		r.wantTexts(key, "newer")
		r.wantRows(key)
		check()
	}
}

// TestCrashBesideAnotherEventLeavesNothingBehind: while the killed event waits for its retry, another one
// publishes. It leaves what the first has begun alone, whatever that is; and the
// first does not delete what is newer than its own message.
func TestCrashBesideAnotherEventLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	died := true
	for step := 1; died; step++ {
		key, check := r.stage(fmt.Sprint(step))
		event := r.emit(key.Canvas)
		pub := r.publication(key, "new")
		_, died = r.killedAt(step, event, pub)
		sent := len(r.service.texts(key)) > 0 && r.service.texts(key)[len(r.service.texts(key))-1] == "new"
		r.published(key, "newer")
		if _, err := NewPublications(r.pool).Publish(r.ctx, r.claim(event), pub); err != nil {
			t.Fatal(err)
		}
		r.end(event)
		if sent {
			r.wantTexts(key, "new", "newer")
		} else {
			r.wantTexts(key, "new")
		}
		r.wantRows(key)
		r.published(key, "newest")
		r.wantTexts(key, "newest")
		r.wantRows(key)
		check()
	}
}
