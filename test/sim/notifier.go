package sim

import (
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// notifier is Pub/Sub: it hands out what it was given in any order, late, doubled
// or not at all. It is used by one who has passed the gate at a time.
type notifier struct {
	w        *world
	messages []*message
	last     int
}

// message is a notification that was not acknowledged.
type message struct {
	notification eventqueue.Notification
	due          time.Time
	ackID        string // of its last delivery
}

func (b *notifier) publish(notifications []eventqueue.Notification) {
	for _, n := range notifications {
		copies, late := 1, time.Duration(0)
		if b.w.broken.orphan {
			copies = 0
		} else if b.w.attacking {
			if b.w.dice.chance(b.w.intensity.drop) {
				b.w.faults["notification dropped"]++
				copies = 0
			} else if b.w.dice.chance(b.w.intensity.double) {
				b.w.faults["notification doubled"]++
				copies = 2
			}
			if b.w.dice.chance(b.w.intensity.late) {
				b.w.faults["notification delayed"]++
				late = b.w.dice.between(time.Millisecond, time.Minute)
			}
		}
		for range copies {
			b.messages = append(b.messages, &message{notification: n, due: time.Now().Add(late)})
		}
	}
}

// due is when a pull would return something.
func (b *notifier) due() time.Time {
	next := b.w.never()
	if b.w.broken.void {
		return next
	}
	for _, m := range b.messages {
		if m.due.Before(next) {
			next = m.due
		}
	}
	return next
}

// pull leases at most max messages, in the dice's order. What may be an abandoned
// event comes alone: see observe in worker.go.
func (b *notifier) pull(max int, alone func(eventqueue.EventID) bool) []eventqueue.Delivery {
	now := time.Now()
	var due []*message
	if b.w.broken.void {
		return nil
	}
	for _, m := range b.messages {
		if !m.due.After(now) {
			due = append(due, m)
		}
	}
	b.w.dice.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	var pulled []eventqueue.Delivery
	for _, m := range due {
		id := m.notification.Event
		switch {
		case len(pulled) == max:
			return pulled
		case alone(id) && len(pulled) > 0:
			continue
		}
		b.last++
		m.ackID, m.due = fmt.Sprintf("m%d", b.last), now.Add(leaseTime)
		pulled = append(pulled, eventqueue.Delivery{Notification: m.notification, AckID: m.ackID})
		if alone(id) {
			return pulled
		}
	}
	return pulled
}

func (b *notifier) find(d eventqueue.Delivery) int {
	return slices.IndexFunc(b.messages, func(m *message) bool { return m.ackID == d.AckID })
}

func (b *notifier) ack(d eventqueue.Delivery) {
	if i := b.find(d); i >= 0 {
		b.messages = slices.Delete(b.messages, i, i+1)
	}
}

func (b *notifier) requeue(d eventqueue.Delivery, after time.Duration) {
	if i := b.find(d); i >= 0 {
		b.messages[i].due = time.Now().Add(after)
		if after <= 0 {
			b.messages[i].ackID = ""
		}
	}
}

// redeliver ends every lease and every delay.
func (b *notifier) redeliver() {
	for _, m := range b.messages {
		m.due, m.ackID = time.Now(), ""
	}
}

// wipe forgets everything.
func (b *notifier) wipe() { b.messages = nil }

// forgedFrom are ids that no event has.
const forgedFrom eventqueue.EventID = 1 << 40
