package eventctl

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func TestEmitKeepsTheValuesBytes(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	values := []string{`{"a": 1.0,  "a":2, "ü":"\u00fc"}`, ` null `, "[1,\n 2]\n"}
	c.run(emitArgs(values[0])...).is(exitOK, "emitted 1 event: id 1\n", "")
	c.run(emitArgs("@"+c.file(values[1]))...).is(exitOK, "id 2", "")
	c.runWith(c.ctx, strings.NewReader(values[2]), emitArgs("-")...).is(exitOK, "id 3", "")
	for i, want := range values {
		if got := one[string](c, `SELECT value FROM events_v2 WHERE id = $1`, i+1); got != want {
			t.Errorf("value %q arrived as %q", want, got)
		}
	}
	if n := len(server.Messages()); n != 3 {
		t.Errorf("%d notifications for 3 events", n)
	}
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 0 {
		t.Errorf("%d notifications are pending", n)
	}
}

func TestEmitPrintsJSON(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	var doc emitted
	c.run(emitArgs("7", "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Count != 1 || *doc.FirstID != 1 || *doc.LastID != 1 {
		t.Errorf("%+v", doc)
	}
}

func TestEmitSetsADelay(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(emitArgs("1", "--delay", "5m", "--no-notify")...).is(exitOK, "id 1", "")
	c.run(emitArgs("1", "--delay-until", "2001-01-01T00:00:00+01:00", "--no-notify")...).is(exitOK, "id 2", "")
	c.run(emitArgs("1", "--delay-until", time.Now().Add(time.Hour).Format(time.RFC3339), "--no-notify")...).is(exitOK, "id 3", "")
	due := one[string](c, `SELECT string_agg((delay_until - enqueued_at BETWEEN interval '299 s' AND interval '301 s')::text || ' ' ||
		(delay_until > now() + interval '50 min')::text, ', ' ORDER BY id) FROM events_v2`)
	if want := "true false, false false, false true"; due != want {
		t.Errorf("the delays are %s, want %s", due, want)
	}
}

func TestEmitWithoutPubSubLeavesItPending(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run(emitArgs("1")...).is(exitBadInput, "", "it is not known how the workers are notified: set, as for them, NOTIFIER=postgres")
	if n := c.events(); n != 0 {
		t.Errorf("%d events were written", n)
	}
	c.run(emitArgs("1", "--no-notify")...).is(exitOK, "id 1", "")
	if pending := one[bool](c, `SELECT notified_at IS NULL FROM events_v2`); !pending {
		t.Error("the notification is not pending")
	}
}

func TestEmitSucceedsThoughPublishingFails(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing(pstest.WithErrorInjection("Publish", 13, "out of order\x1b[2J"))
	r := c.run(emitArgs("1")...).is(exitOK, "id 1", `eventctl: warning: could not publish notifications`)
	if strings.Contains(r.err, "\x1b") {
		t.Errorf("a control character reaches the terminal: %q", r.err)
	}
	if pending := one[bool](c, `SELECT notified_at IS NULL FROM events_v2`); !pending {
		t.Error("the notification is not pending")
	}
}

func TestEmitRefusesBadInput(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	directory := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":            {[]string{"emit"}, "--canvas is missing"},
		"no value":           {scopeArgs("emit", canvasA, "WORKER", "greet"), "--value is missing"},
		"canvas":             {scopeArgs("emit", "nonsense", "WORKER", "greet", "--value", "1"), "is not a uuid"},
		"canvas in braces":   {scopeArgs("emit", "{"+canvasA+"}", "WORKER", "greet", "--value", "1"), "is not a uuid"},
		"zero canvas":        {scopeArgs("emit", "00000000-0000-0000-0000-000000000000", "WORKER", "greet", "--value", "1"), "canvas_id"},
		"empty module":       {scopeArgs("emit", canvasA, "", "greet", "--value", "1"), "module: is empty"},
		"control character":  {scopeArgs("emit", canvasA, "WORKER", "a\x1b[31m", "--value", "1"), `holds the control character`},
		"bad UTF-8":          {scopeArgs("emit", canvasA, "WORKER", "a\xff", "--value", "1"), "is not valid UTF-8"},
		"long name":          {scopeArgs("emit", canvasA, "WORKER", strings.Repeat("n", 256), "--value", "1"), "256 bytes"},
		"empty modifier":     {emitArgs("1", "--modifier", ""), "modifier: is empty"},
		"empty value":        {emitArgs(""), "value: is empty"},
		"not JSON":           {emitArgs("{"), "value: is not JSON"},
		"NUL":                {emitArgs(`"\u0000"`), `holds \u0000`},
		"half a surrogate":   {emitArgs(`"\ud800"`), "half a surrogate pair"},
		"no such file":       {emitArgs("@" + directory + "/none"), "no such file"},
		"directory":          {emitArgs("@" + directory), "is a directory"},
		"large file":         {emitArgs("@" + c.file(strings.Repeat(" ", 300_000))), "longer than the limit"},
		"negative delay":     {emitArgs("1", "--delay", "-5m"), "is negative"},
		"delay of a century": {emitArgs("1", "--delay", "876000h"), "more than the limit"},
		"huge delay":         {emitArgs("1", "--delay", "99999999999h"), "is not a duration"},
		"no unit":            {emitArgs("1", "--delay", "5"), "is not a duration"},
		"no time":            {emitArgs("1", "--delay-until", "tomorrow"), "is not a time"},
		"far off":            {emitArgs("1", "--delay-until", "9999-01-01T00:00:00Z"), "limit"},
		"both delays":        {emitArgs("1", "--delay", "1s", "--delay-until", "2030-01-01T00:00:00Z"), "none of the others"},
		"file and value":     {emitArgs("1", "--file", "-"), "none of the others"},
		"argument":           {emitArgs("1", "stray"), "stray"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.run(test.args...)
			r.t = t
			r.is(exitBadInput, "", test.want)
			if !strings.HasPrefix(r.err, "eventctl: ") || strings.Contains(r.err, "\x1b") {
				t.Errorf("stderr: %q", r.err)
			}
		})
	}
	if n := c.events(); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

// failingWriter is an output that does not work.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFailedOutputIsReported(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	var stderr strings.Builder
	status := Run(c.ctx, emitArgs("1", "--no-notify"), c.env, os.Stdin, failingWriter{}, &stderr)
	if status != exitFailed || !strings.Contains(stderr.String(), "the command has done its work") {
		t.Errorf("exit status %d, stderr: %s", status, &stderr)
	}
}

// TestEmitHasTheModesOfUniqueKeys: what is invalid writes nothing, replace gives what waits the newest value, and until_start
// lets another event in when the first one runs. A file has the same modes, and the same errors.
func TestEmitHasTheModesOfUniqueKeys(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	emit := func(value string, args ...string) result {
		return c.run(emitArgs(value, append(args, "--no-notify")...)...)
	}
	line := func(value, more string) string {
		return `{"canvas_id": "` + canvasA + `", "module": "WORKER", "name": "greet", "modifier": "_", "value": ` + value + `, ` + more + "}\n"
	}
	inFile := func(lines ...string) result {
		return c.run("emit", "--file", c.file(strings.Join(lines, "")), "--no-notify")
	}
	for _, test := range []struct {
		flags      []string
		keys, want string
	}{
		{[]string{"--unique-key", "k", "--unique-mode", "sometimes"}, `"unique_key": "k", "unique_mode": "sometimes"`,
			`unique_mode: is "sometimes": use until_end, until_start or replace`},
		{[]string{"--unique-mode", "replace"}, `"unique_mode": "replace"`, "unique_key: is missing"},
		{[]string{"--unique-key", "k", "--unique-mode", ""}, `"unique_key": "k", "unique_mode": ""`, "is empty: leave it out for until_end"},
		{[]string{"--unique-key", "k", "--unique-mode", "until_start", "--unique-for", "1h"}, `"unique_key": "k", "unique_mode": "until_start", "unique_for": "1h"`,
			"unique_for: does not go with the mode until_start"},
		{[]string{"--unique-key", "k", "--max-wait", "1h"}, `"unique_key": "k", "max_wait": "1h"`, "max_wait: goes with the mode replace only"},
	} {
		emit("1", test.flags...).is(exitBadInput, "", test.want)
		inFile(line("0", `"unique_key": "other"`), line("1", test.keys)).is(exitBadInput, "", test.want)
	}
	inFile(line("1", `"unique_key": "k", "unique_mode": "replace", "max_wait": "soon"`)).is(exitBadInput, "", "is not a duration")
	if n := c.events(); n != 0 {
		t.Fatalf("%d events were written", n)
	}

	replace := []string{"--unique-key", "r", "--unique-mode", "replace", "--delay", "10m", "--max-wait", "1m"}
	const replaceKeys = `"unique_key": "r", "unique_mode": "replace", "delay": "10m", "max_wait": "1m"`
	emit("1", replace...).is(exitOK, "emitted 1 event: id 1\n", "")
	emit("2", replace...).is(exitOK, "emitted 0 events: event 1, which waits, was replaced\n", "")
	var doc emitted
	emit("3", append(replace, "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Count != 0 || doc.Repeats != 0 || doc.Replaced != 1 || *doc.FirstID != 1 {
		t.Errorf("%+v", doc)
	}
	inFile(line("4", replaceKeys), line("5", replaceKeys)).is(exitOK, "emitted 0 events; 2 events replaced one that waits\n", "")
	if got := one[string](c, `SELECT value || ' ' || (delay_until - enqueued_at) FROM events_v2`); got != "5 00:01:00" {
		t.Errorf("the event has the value and delay %s", got)
	}
	elsewhere := emit("6", append(replace, "--ordering-key", "o")...).is(exitBadInput, "", "cannot replace it")
	if strings.Contains(elsewhere.err, "SQLSTATE") {
		t.Errorf("bad input is reported as the database's failure: %s", elsewhere.err)
	}

	start := []string{"--unique-key", "s", "--unique-mode", "until_start"}
	emit("1", start...).is(exitOK, "emitted 1 event: id 2\n", "")
	emit("2", start...).is(exitOK, "emitted 0 events: its key is that of event 2\n", "")
	c.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() WHERE id = 2`)
	inFile(line("3", `"unique_key": "s", "unique_mode": "until_start"`), line("4", replaceKeys)).
		is(exitOK, "emitted 1 event: id 3; 1 event replaced one that waits\n", "")
}

func TestEmitOfAKnownKeyIsRepeated(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	keyed := func(args ...string) []string { return emitArgs("1", append(args, "--no-notify")...) }
	c.run(keyed("--unique-key", "invoice 7", "--unique-for", "24h")...).is(exitOK, "emitted 1 event: id 1\n", "")
	c.run(keyed("--unique-key", "invoice 7")...).is(exitOK, "emitted 0 events: its key is that of event 1\n", "")
	var doc emitted
	c.run(keyed("--unique-key", "invoice 7", "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Count != 0 || doc.Repeats != 1 || *doc.FirstID != 1 {
		t.Errorf("%+v", doc)
	}
	if got := one[string](c, `SELECT key || ' ' || unique_seconds FROM unique_keys JOIN events_v2 ON id = event_id`); got != "invoice 7 86400" {
		t.Errorf("stored: %s", got)
	}
	c.run(keyed("--unique-key", "")...).is(exitBadInput, "", "--unique-key is empty")
	c.run(keyed("--unique-for", "1h")...).is(exitBadInput, "", "unique_key")
	file := c.file(`{"canvas_id": "ca170000-0000-0000-0000-000000000001", "module": "M", "name": "n", "modifier": "_", "value": 1, "unique_key": "k", "unique_for": "1h"}
{"canvas_id": "ca170000-0000-0000-0000-000000000001", "module": "M", "name": "n", "modifier": "_", "value": 1, "unique_key": "k"}
{"canvas_id": "ca170000-0000-0000-0000-000000000001", "module": "M", "name": "n", "modifier": "_", "value": 1}
`)
	c.run("emit", "--file", file, "--no-notify").is(exitOK, "emitted 2 events: ids 2 to 3; 1 event had a key of another\n", "")

	// One more than a batch, and none of them is new.
	repeats := c.file(strings.Repeat(`{"canvas_id": "`+canvasA+`", "module": "M", "name": "n", "modifier": "_", "value": 1, "unique_key": "invoice 7"}
`, emitBatch+1))
	c.run("emit", "--file", repeats, "--no-notify").is(exitOK, "emitted 0 events; 1001 events had a key of another\n", "")
}
