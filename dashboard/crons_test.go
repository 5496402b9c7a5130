package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"eventsv2/access"
	"eventsv2/cronchecker"
	"eventsv2/test/testenv"
)

// hiddenField is the name of what a form changes, which has to be exact.
var hiddenField = regexp.MustCompile(`<input type="hidden"[^>]*>`)

// cron adds a definition that began a day ago, with the record of one slot that has passed since.
func (q *queue) cron(name, schedule string) {
	q.t.Helper()
	definitions := cronchecker.NewDefinitions(q.store.Pool())
	if _, err := definitions.Add(testenv.Context(q.t), cronchecker.NewDefinition{Canvas: seeded.Canvas, Name: name, Schedule: schedule, TimeZone: "Europe/Berlin"}, false); err != nil {
		q.t.Fatal(err)
	}
	q.exec(`UPDATE cron_definitions SET starts_at = clock_timestamp() - interval '1 day' WHERE name = $1`, name)
	q.exec(`INSERT INTO cron_records (cron_id, slot, event_id) SELECT id, date_trunc('hour', clock_timestamp()), 4711 FROM cron_definitions WHERE name = $1`, name)
}

// A definition is shown in words, with the slots that have an event, those that have none, and those to come; it is
// switched off and on, changed and run now.
func TestCronPageShowsAndChangesDefinitions(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.cron("hourly"+script+reversed, "0 * * * *")
	b := q.steering(access.Verbs()...)
	page := b.get("/crons")
	b.wants(page, 200, "Every hour", "Europe/Berlin", `href="/events/4711"`, `class="state expired">no event`, "&lt;script&gt;", `class="state live">on`)
	if text := hiddenField.ReplaceAllString(page.Body.String(), ""); strings.Contains(text, script) || strings.Contains(text, reversed) {
		t.Error("the name of a definition is not escaped")
	}
	form := url.Values{"canvas": {seeded.Canvas.String()}, "name": {"hourly" + script + reversed}}
	here := "/crons?canvas=" + seeded.Canvas.String()
	b.leads(b.post("/crons/disable", form), here)
	b.wants(b.get(here), 200, `class="state">off`, "It is switched off")
	b.leads(b.post("/crons/enable", form), here)
	b.wants(b.get(here), 200, `class="state live">on`)

	edited := url.Values{"canvas": form["canvas"], "name": form["name"], "schedule": {"30 9 * * mon-fri"}, "time_zone": {"UTC"}, "missed": {"all"}, "skip_if_paused": {"1"}}
	b.leads(b.post("/crons/edit", edited), here)
	b.wants(b.get(here), 200, "At 09:30, Monday through Friday", "all are emitted late", "skipped while paused", `name="skip_if_paused" value="1" checked`)
	edited.Set("schedule", "99 9 * * *")
	b.leads(b.post("/crons/edit", edited), here)
	b.wants(b.get(here), 200, "Nothing was changed: schedule", "At 09:30")

	if w := b.post("/crons/run", form); w.Code != 303 || !strings.HasPrefix(w.Header().Get("Location"), "/events/") {
		t.Fatalf("run now: %d %s", w.Code, w.Header().Get("Location"))
	}
	if got := q.one(`SELECT concat_ws(' ', count(*), min(module), min(value ->> 'time_zone')) FROM (SELECT module, value::jsonb AS value FROM events_v2) AS e`); got != "1 CRON UTC" {
		t.Errorf("emitted is %q", got)
	}
	for _, action := range []string{"disable_cron", "enable_cron", "set_cron", "run_cron"} {
		if got := q.audited(action); got != "1" {
			t.Errorf("%s is audited %s times", action, got)
		}
	}
	b.leads(b.post("/crons/disable", url.Values{"canvas": form["canvas"], "name": {"none"}}), here)
	b.wants(b.get(here), 200, "There is no such definition any more.")
}

// A form that is sent twice, as by a double click, emits once; the page that is loaded again emits another event.
func TestRunNowEmitsOncePerPage(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.cron("hourly", "0 * * * *")
	q.cron("nightly", "30 2 * * *")
	b := q.steering(access.Verbs()...)
	here := "/crons?canvas=" + seeded.Canvas.String()
	form := func(name string) url.Values {
		t.Helper()
		values := url.Values{}
		for _, of := range regexp.MustCompile(`(?s)<form action="/crons/run".*?</form>`).FindAllString(b.get(here).Body.String(), -1) {
			if strings.Contains(of, `value="`+name+`"`) {
				for _, input := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(of, -1) {
					values.Set(input[1], input[2])
				}
			}
		}
		return values
	}
	emitted := func(form url.Values, said string) string {
		t.Helper()
		w := b.post("/crons/run", form)
		page := w.Header().Get("Location")
		if !strings.HasPrefix(page, "/events/") {
			t.Fatalf("%d, leads to %q", w.Code, page)
		}
		b.wants(b.get(page), 200, said)
		return page
	}
	once := form("hourly")
	first := emitted(once, "It was emitted.")
	b.leads(b.post("/crons/run", once), here)
	b.wants(b.get(here), 200, "It was emitted before, as event "+strings.TrimPrefix(first, "/events/")+", and not again")
	if other := emitted(form("nightly"), "It was emitted."); other == first {
		t.Error("the other definition emitted nothing")
	}
	if later := emitted(form("hourly"), "It was emitted."); later == first {
		t.Error("the page that was loaded again emitted nothing")
	}
	long := form("hourly")
	long.Set("key", strings.Repeat("k", 256))
	b.leads(b.post("/crons/run", long), here)
	b.wants(b.get(here), 200, "Nothing was changed: ")
	if got := q.one(`SELECT count(*) FROM events_v2`); got != "3" || q.audited("run_cron") != "3" {
		t.Errorf("%s events were emitted, %s are audited", got, q.audited("run_cron"))
	}
}

// A definition is added and removed on the page; one that is there, or makes no sense, is not replaced.
func TestCronIsAddedAndRemovedOnItsPage(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	b := q.steering(access.Verbs()...)
	here := "/crons?canvas=" + seeded.Canvas.String()
	form := url.Values{"canvas": {" " + seeded.Canvas.String()}, "name": {"nightly"}, "schedule": {"30 2 * * *"}, "time_zone": {"Europe/Berlin"}, "missed": {"none"}}
	b.wants(b.get(here), 200, "No cron is defined", `value="`+seeded.Canvas.String()+`"`, `action="/crons/add"`)
	b.leads(b.post("/crons/add", form), here)
	b.wants(b.get(here), 200, "It was added", "At 02:30", "Europe/Berlin", "none is emitted late")
	form.Set("schedule", "0 3 * * *")
	b.leads(b.post("/crons/add", form), here)
	b.wants(b.get(here), 200, "Nothing was changed: the canvas has a definition of this name", "At 02:30")
	form.Set("name", "broken")
	form.Set("schedule", "99 9 * * *")
	b.leads(b.post("/crons/add", form), here)
	b.wants(b.get(here), 200, "Nothing was changed: schedule")
	form.Set("canvas", "mine")
	b.leads(b.post("/crons/add", form), "/crons")
	b.wants(b.get("/crons"), 200, "is not a uuid")
	remove := url.Values{"canvas": {seeded.Canvas.String()}, "name": {"nightly"}}
	b.leads(b.post("/crons/remove", remove), here)
	b.wants(b.get(here), 200, "It was removed", "No cron is defined")
	b.leads(b.post("/crons/remove", remove), here)
	b.wants(b.get(here), 200, "There is no such definition any more.")
	if added, removed := q.audited("set_cron"), q.audited("remove_cron"); added != "1" || removed != "1" {
		t.Errorf("%s additions and %s removals are audited", added, removed)
	}
}

// The next slots say what the next change of the clock does to them: 02:30 in Berlin is skipped, or comes twice.
func TestCronPageNamesClockChanges(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// A change of today may be over when the page is read.
	_, change := time.Now().Add(48 * time.Hour).In(berlin).ZoneBounds()
	q.cron("nightly", fmt.Sprintf("30 2 %d %d *", change.Day(), change.Month()))
	b := q.steering(access.Read)
	b.wants(b.get("/crons"), 200, "<small>On "+change.Format(time.DateOnly)+" the clocks go ")
}

// Crons are changed by administrators only.
func TestReaderCannotChangeCrons(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.cron("hourly", "0 * * * *")
	b := q.steering(access.Read, access.Operate)
	if text := b.get("/crons").Body.String(); strings.Contains(text, "<button") || !strings.Contains(text, "Every hour") {
		t.Error("a reader has buttons, or no page")
	}
	form := url.Values{"canvas": {seeded.Canvas.String()}, "name": {"hourly"}, "schedule": {"every day"}}
	for _, verb := range []string{"run", "enable", "disable", "edit", "add", "remove"} {
		b.wants(b.post("/crons/"+verb, form), 403, "You may not do this")
	}
	if got := q.audited(""); got != "0" {
		t.Errorf("%s changes are audited", got)
	}
}
