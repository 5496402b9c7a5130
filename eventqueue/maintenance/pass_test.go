package maintenance_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/test/rig"
)

// TestRelayPublishesAndSearches (I1, I2): all pages of pending notifications, and all pages
// of those that seem lost.
func TestRelayPublishesAndSearches(t *testing.T) {
	t.Parallel()
	p := rig.NewPages(3, 3)
	const page = eventqueue.MaxPublish
	done, err := p.Relay(t, maintenance.RelayConfig{}).Pass(t.Context())
	if err != nil || done != (maintenance.Relayed{Pending: 3 * page, Lost: 3 * page}) {
		t.Errorf("published %+v, %v", done, err)
	}
	p.PublishedOnce(t, 6*page)
}

// TestUnpublishedNotificationsArePendingAgain (I1, I2).
func TestUnpublishedNotificationsArePendingAgain(t *testing.T) {
	t.Parallel()
	const page = eventqueue.MaxPublish
	for name, p := range map[string]*rig.Pages{"pending": rig.NewPages(1, 0), "lost": rig.NewPages(0, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.Failing = true
			// More than one request can carry.
			for id := range eventqueue.EventID(page) {
				extra := eventqueue.Notification{Event: page + 1 + id, Canvas: rig.Canvas}
				if name == "pending" {
					p.Due[0] = append(p.Due[0], extra)
				} else {
					p.Lost[0] = append(p.Lost[0], extra)
				}
			}
			if done, err := p.Relay(t, maintenance.RelayConfig{}).Pass(t.Context()); err == nil {
				t.Errorf("the relay reports that it published %+v", done)
			}
			if len(p.Pending) != 2*page {
				t.Errorf("%d of %d are pending again", len(p.Pending), 2*page)
			}
		})
	}
}

// TestRelayKeepsItsRate (I11), in virtual time.
func TestRelayKeepsItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := rig.NewPages(11, 0)
		began := time.Now()
		if _, err := p.Relay(t, maintenance.RelayConfig{PerSecond: eventqueue.MaxPublish}).Pass(t.Context()); err != nil {
			t.Error(err)
		}
		// The first second's worth may go out at once.
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("eleven seconds' worth took %s", took)
		}
	})
}

// TestStoppedRelayLosesNothingOfWhatItHasTaken (I1, I2): a relay that is stopped while it waits for its rate has all that it
// has taken and not published pending again.
func TestStoppedRelayLosesNothingOfWhatItHasTaken(t *testing.T) {
	t.Parallel()
	const perSecond, page = 200, eventqueue.MaxPublish
	for _, name := range []string{"pending", "lost"} {
		for _, after := range []time.Duration{0, 50 * time.Millisecond, 900 * time.Millisecond, 2500 * time.Millisecond, time.Hour} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					all := slices.Concat(rig.NewPages(2, 0).Due...)
					p := rig.NewPages(0, 0)
					if p.Due = append(p.Due, all); name == "lost" {
						p.Due, p.Lost = nil, p.Due
					}
					ctx, stop := context.WithTimeout(t.Context(), after)
					defer stop()
					if after == time.Hour { // it is stopped during its first request
						p.Sending = stop
					}
					_, _ = p.Relay(t, maintenance.RelayConfig{PerSecond: perSecond}).Pass(ctx) // it is stopped
					if len(p.Pending)+len(p.Published) == 0 && after == 0 {
						return // it has taken nothing
					}
					for _, n := range all {
						if published := p.Published[n.Event]; published > 1 || (published == 1) == p.Pending[n.Event] {
							t.Fatalf("event %s was published %d times, and is pending: %t", n.Event, published, p.Pending[n.Event])
						}
					}
					if after == time.Hour && len(p.Published) != perSecond/10 {
						t.Errorf("%d were published, and one request has %d", len(p.Published), perSecond/10)
					}
					// A whole request may go out at once.
					if most := page + int(after.Seconds()*perSecond) + 1; len(p.Published) > most {
						t.Errorf("%d were published in %s, at %d a second", len(p.Published), after, perSecond)
					}
				})
			})
		}
	}
}
