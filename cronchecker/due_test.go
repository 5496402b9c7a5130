package cronchecker

import (
	"encoding/json"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

var canvasA = eventqueue.CanvasID{0xa, 15: 1}
var canvasB = eventqueue.CanvasID{0xb, 15: 2}

func TestDueSlotsFollowTheMissedPolicy(t *testing.T) {
	t.Parallel()
	noon := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	minutes := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	tests := map[string]struct {
		schedule     string
		missed       Missed
		starts, last time.Time
		now          time.Time
		want         []time.Time
		more         bool
	}{
		"nothing yet":                           {"every hour", MissedLatest, minutes(1), time.Time{}, minutes(59), nil, false},
		"due to the second":                     {"every hour", MissedLatest, minutes(1), time.Time{}, minutes(60), []time.Time{minutes(60)}, false},
		"not a moment earlier":                  {"every hour", MissedLatest, minutes(1), time.Time{}, minutes(60).Add(-1), nil, false},
		"a slot at the start is not due":        {"every hour", MissedAll, noon, time.Time{}, minutes(59), nil, false},
		"a slot right after the start is":       {"every hour", MissedAll, noon.Add(-1), time.Time{}, minutes(59), []time.Time{noon}, false},
		"a recorded slot is not due":            {"every hour", MissedAll, minutes(-600), noon, minutes(59), nil, false},
		"latest is the last one":                {"every minute", MissedLatest, minutes(-600), minutes(-9), noon, []time.Time{noon}, false},
		"latest, however late":                  {"every week", MissedLatest, minutes(-99999), time.Time{}, noon, []time.Time{noon.Add(-156 * time.Hour)}, false},
		"all, oldest first":                     {"every hour", MissedAll, minutes(-600), minutes(-180), noon, []time.Time{minutes(-120), minutes(-60), noon}, false},
		"all, after a start newer than records": {"every hour", MissedAll, minutes(-61), minutes(-180), noon, []time.Time{minutes(-60), noon}, false},
		"none, in time":                         {"every hour", MissedNone, minutes(-600), minutes(-180), minutes(2), []time.Time{noon}, false},
		"none, too late":                        {"every hour", MissedNone, minutes(-600), minutes(-180), minutes(2).Add(1), nil, false},
		"a clock that went back":                {"every minute", MissedAll, minutes(-600), noon, minutes(-5), nil, false},
		"a start in the future":                 {"every minute", MissedAll, minutes(5), time.Time{}, noon, nil, false},
		"the start counts without records":      {"every minute", MissedLatest, minutes(-600), time.Time{}, noon, []time.Time{noon}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Definition{ID: 7, Canvas: canvasA, Name: "report", Missed: tt.missed, StartsAt: tt.starts, LastSlot: tt.last}
			slots, more := due(d, mustParse(t, tt.schedule, ""), tt.now, 2*time.Minute)
			if more != tt.more || len(slots) != len(tt.want) {
				t.Fatalf("got %d slots, more %v; want %v, %v", len(slots), more, tt.want, tt.more)
			}
			for i, slot := range slots {
				if !slot.At.Equal(tt.want[i]) || slot.Cron != 7 {
					t.Errorf("slot %d of %s at %s, want %s", i, slot.Cron, slot.At, tt.want[i])
				}
			}
		})
	}
}

func TestDueIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	d := Definition{ID: 7, Missed: MissedAll, StartsAt: now.Add(-1500 * time.Minute)}
	schedule := mustParse(t, "every minute", "")
	first, more := due(d, schedule, now, 0)
	if len(first) != maxPerDefinition || !more || !first[0].At.Equal(d.StartsAt.Add(time.Minute)) {
		t.Fatalf("got %d slots from %s, more %v", len(first), first[0].At, more)
	}
	d.LastSlot = first[len(first)-1].At
	rest, more := due(d, schedule, now, 0)
	if len(rest) != 500 || more || !rest[499].At.Equal(now) {
		t.Fatalf("then %d slots, more %v", len(rest), more)
	}
}

func TestSlotEventNamesDefinitionAndTime(t *testing.T) {
	t.Parallel()
	d := Definition{ID: 7, Canvas: canvasA, Name: `daily "report"`, Schedule: "every day", TimeZone: "Europe/Berlin"}
	at := time.Date(2025, 6, 15, 0, 0, 0, 0, mustParse(t, "every day", "Europe/Berlin").Zone())
	e := d.slot(at).Event
	if e.Canvas != canvasA || e.Handler() != (eventqueue.HandlerKey{Module: "CRON", Name: d.Name, Modifier: "_"}) {
		t.Errorf("the event is for %s on %s", e.Handler(), e.Canvas)
	}
	var got map[string]any
	if err := json.Unmarshal(e.Value, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"cron_id": 7.0, "name": d.Name, "slot": "2025-06-14T22:00:00Z", "schedule": "every day", "time_zone": "Europe/Berlin"}
	if len(got) != len(want) {
		t.Errorf("value is %s", e.Value)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %v, want %v", key, got[key], value)
		}
	}
	if err := (eventqueue.Limits{}).CheckEvents([]eventqueue.NewEvent{e}, at); err != nil {
		t.Error(err)
	}
}

func TestParseMissedAcceptsKnownPolicies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Missed{"": MissedLatest, "latest": MissedLatest, "all": MissedAll, "none": MissedNone} {
		if got, err := ParseMissed(text); err != nil || got != want {
			t.Errorf("ParseMissed(%q) = %q, %v", text, got, err)
		}
	}
	if _, err := ParseMissed("some"); err == nil {
		t.Error("some was accepted")
	}
}
