package cronchecker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

func TestAddAndList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	added, err := r.definitions.Add(r.ctx, NewDefinition{
		Canvas: canvasA, Name: "report", Schedule: " 30  9 * * mon-fri", TimeZone: "Europe/Berlin", Missed: MissedNone,
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := Definition{
		ID: added.ID, Canvas: canvasA, Name: "report", Schedule: "30 9 * * mon-fri", TimeZone: "Europe/Berlin",
		Missed: MissedNone, Enabled: true, StartsAt: added.StartsAt,
	}
	if added != want || added.ID == 0 || added.StartsAt.IsZero() {
		t.Errorf("got %+v\nwant %+v", added, want)
	}
	plain, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasB, Name: "report", Schedule: "every day"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if plain.TimeZone != "UTC" || plain.Missed != MissedLatest {
		t.Errorf("defaults are %+v", plain)
	}
	for name, tt := range map[string]struct {
		canvas *eventqueue.CanvasID
		want   []Definition
	}{
		"everywhere": {nil, []Definition{added, plain}},
		"on one":     {&canvasB, []Definition{plain}},
		"on none":    {&eventqueue.CanvasID{9}, nil},
	} {
		list, err := r.definitions.List(r.ctx, tt.canvas)
		if err != nil || len(list) != len(tt.want) {
			t.Fatalf("%s: %v, %v", name, list, err)
		}
		for i := range list {
			if list[i] != tt.want[i] {
				t.Errorf("%s: got %+v, want %+v", name, list[i], tt.want[i])
			}
		}
	}
}

// TestInvalidDefinitionIsNotWritten writes nothing.
func TestInvalidDefinitionIsNotWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good := NewDefinition{Canvas: canvasA, Name: "report", Schedule: "every day"}
	for want, change := range map[string]func(d *NewDefinition){
		"canvas_id: is missing":     func(d *NewDefinition) { d.Canvas = eventqueue.CanvasID{} },
		"name: is empty":            func(d *NewDefinition) { d.Name = "" },
		"name: is 256 bytes":        func(d *NewDefinition) { d.Name = strings.Repeat("n", 256) },
		"control character":         func(d *NewDefinition) { d.Name = "a\x00b" },
		"not valid UTF-8":           func(d *NewDefinition) { d.Name = "a\xff" },
		"never comes true":          func(d *NewDefinition) { d.Schedule = "0 0 31 2 *" },
		`hour "25"`:                 func(d *NewDefinition) { d.Schedule = "0 25 * * *" },
		`"Mars/Olympus" is unknown`: func(d *NewDefinition) { d.TimeZone = "Mars/Olympus" },
		`missed "some" is unknown`:  func(d *NewDefinition) { d.Missed = "some" },
	} {
		d := good
		change(&d)
		if _, err := r.definitions.Add(r.ctx, d, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Add says %v, want %q", err, want)
		}
	}
	if list, err := r.definitions.List(r.ctx, nil); err != nil || len(list) != 0 {
		t.Errorf("there are %v, %v", list, err)
	}
}

func TestAddTakenAndReplace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
	d := NewDefinition{Canvas: canvasA, Name: "report", Schedule: "every hour", TimeZone: "Europe/Berlin"}
	_, err := r.definitions.Add(r.ctx, d, false)
	if !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), `"report" of canvas `+canvasA.String()) {
		t.Errorf("a taken name: %v", err)
	}
	if list, err := r.definitions.List(r.ctx, nil); err != nil || len(list) != 1 || list[0] != old {
		t.Errorf("it changed: %+v, %v", list, err)
	}
	r.check()
	if err := r.definitions.SetEnabled(r.ctx, canvasA, "report", false); err != nil {
		t.Fatal(err)
	}
	replaced, err := r.definitions.Add(r.ctx, d, true)
	if err != nil {
		t.Fatal(err)
	}
	if replaced.ID != old.ID || replaced.Schedule != "every hour" || !replaced.Enabled ||
		!replaced.StartsAt.After(old.StartsAt.Add(71*time.Hour)) || replaced.LastSlot.IsZero() {
		t.Errorf("got %+v", replaced)
	}
	// The hours since the old start are nobody's.
	if result := r.check(); result.Due != 0 {
		t.Errorf("then %+v", result)
	}
	if _, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasA, Name: "new", Schedule: "every day"}, true); err != nil {
		t.Errorf("replacing nothing: %v", err)
	}
}

// TestReplacingByTheSameKeepsWhatIsDue: who sets its definitions each time that it is
// deployed loses no slot (I14).
func TestReplacingByTheSameKeepsWhatIsDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
	again, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasA, Name: "report", Schedule: "every day", Missed: MissedAll}, true)
	if err != nil || again != old {
		t.Errorf("it became %+v, %v; want %+v", again, err, old)
	}
	if result := r.check(); result.Due == 0 {
		t.Errorf("nothing is due any more: %+v", result)
	}
	r.exec(`ALTER TABLE cron_definitions DROP CONSTRAINT cron_definitions_readable`) // as rows from before it may be
	r.exec(`UPDATE cron_definitions SET starts_at = 'infinity'`)
	if again, err = r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasA, Name: "report", Schedule: "every day", Missed: MissedAll}, true); err != nil || again.StartsAt.IsZero() {
		t.Errorf("a start that nobody can read became %+v, %v", again, err)
	}
}

func TestDisabledDefinitionEmitsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
	set := func(enabled bool) Definition {
		t.Helper()
		if err := r.definitions.SetEnabled(r.ctx, canvasA, "report", enabled); err != nil {
			t.Fatal(err)
		}
		list, err := r.definitions.List(r.ctx, &canvasA)
		if err != nil || len(list) != 1 || list[0].Enabled != enabled {
			t.Fatalf("got %+v, %v", list, err)
		}
		return list[0]
	}
	if got := set(true); got != d {
		t.Errorf("enabling what is enabled changed it to %+v", got)
	}
	set(false)
	if result := r.check(); result.Definitions != 0 || result.Due != 0 {
		t.Errorf("disabled: %+v", result)
	}
	if got := set(false); !got.StartsAt.Equal(d.StartsAt) {
		t.Errorf("disabling moved the start to %s", got.StartsAt)
	}
	if got := set(true); !got.StartsAt.After(d.StartsAt.Add(71 * time.Hour)) {
		t.Errorf("enabled again, it starts at %s", got.StartsAt)
	}
	if result := r.check(); result.Definitions != 1 || result.Due != 0 {
		t.Errorf("enabled again: %+v", result)
	}
	r.wantSlots()
}

// TestDefinitionsAreInvisibleToOtherCanvases (I16).
func TestDefinitionsAreInvisibleToOtherCanvases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every day", MissedLatest, time.Hour)
	r.add(canvasB, "report", "every day", MissedLatest, time.Hour)
	if err := r.definitions.SetEnabled(r.ctx, canvasB, "report", false); err != nil {
		t.Fatal(err)
	}
	if err := r.definitions.Remove(r.ctx, canvasB, "report"); err != nil {
		t.Fatal(err)
	}
	list, err := r.definitions.List(r.ctx, nil)
	if err != nil || len(list) != 1 || list[0].Canvas != canvasA || !list[0].Enabled {
		t.Errorf("left are %+v, %v", list, err)
	}
}

func TestUnknownDefinitionIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
	_, nextErr := r.definitions.Next(r.ctx, canvasB, "report", 1)
	for name, err := range map[string]error{
		"Remove":     r.definitions.Remove(r.ctx, canvasB, "report"),
		"SetEnabled": r.definitions.SetEnabled(r.ctx, canvasA, "Report", true),
		"Next":       nextErr,
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemoveTakesTheRecordsAndLeavesTheEvents and a new definition of that name
// starts afresh.
func TestRemoveTakesTheRecordsAndLeavesTheEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.add(canvasA, "report", "every day", MissedAll, 72*time.Hour)
	r.check()
	if err := r.definitions.Remove(r.ctx, canvasA, "report"); err != nil {
		t.Fatal(err)
	}
	var records, events int
	const countSQL = `SELECT (SELECT count(*) FROM cron_records), (SELECT count(*) FROM events_v2)`
	if err := r.pool.QueryRow(r.ctx, countSQL).Scan(&records, &events); err != nil || records != 0 || events != 3 {
		t.Errorf("%d records and %d events are left, %v", records, events, err)
	}
	again, err := r.definitions.Add(r.ctx, NewDefinition{Canvas: canvasA, Name: "report", Schedule: "every day"}, false)
	if err != nil || again.ID == old.ID || !again.LastSlot.IsZero() {
		t.Errorf("the new one is %+v, %v", again, err)
	}
}

func TestNextListsFutureSlots(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d, err := r.definitions.Add(r.ctx, NewDefinition{
		Canvas: canvasA, Name: "report", Schedule: "0 0 1 1 *", TimeZone: "Pacific/Apia",
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	slots, err := r.definitions.Next(r.ctx, canvasA, "report", 5)
	if err != nil || len(slots) != 5 {
		t.Fatalf("got %v, %v", slots, err)
	}
	zone := mustParse(t, d.Schedule, d.TimeZone).Zone()
	for i, slot := range slots {
		want := time.Date(d.StartsAt.In(zone).Year()+1+i, 1, 1, 0, 0, 0, 0, zone)
		if !slot.Equal(want) || slot.Location().String() != "Pacific/Apia" {
			t.Errorf("slot %d is %s, want %s", i, slot, want)
		}
	}
	for _, n := range []int{-1, 0, MaxNext + 1} {
		if _, err := r.definitions.Next(r.ctx, canvasA, "report", n); err == nil {
			t.Errorf("n = %d was accepted", n)
		}
		if _, _, err := r.definitions.Preview(r.ctx, canvasA, "report", time.Time{}, n); err == nil {
			t.Errorf("a preview of %d was accepted", n)
		}
	}
	of, previewed, err := r.definitions.Preview(r.ctx, canvasA, "report", time.Time{}, 5)
	if err != nil || of.ID != d.ID || len(previewed) != 5 || !previewed[4].At.Equal(slots[4]) {
		t.Errorf("the preview is %v of %+v, %v", previewed, of, err)
	}
	if _, previewed, err = r.definitions.Preview(r.ctx, canvasA, "report", d.StartsAt.AddDate(-10, 0, 0), 1); err != nil || !previewed[0].At.Before(d.StartsAt) {
		t.Errorf("the preview of earlier times is %v, %v", previewed, err)
	}
	if _, _, err = r.definitions.Preview(r.ctx, canvasA, "none", time.Time{}, 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("the preview of none is %v", err)
	}
}
