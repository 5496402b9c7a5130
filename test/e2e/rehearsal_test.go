package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// faster is how much shorter the times of the alerts are in a rehearsal: minutes become seconds.
const faster = 60

// alert is a rule of deploy/alerts.
type alert struct {
	Alert       string
	Annotations struct{ Runbook string }
}

// alerts are the rules of deploy/alerts, and their file with shorter times. Ages that are compared with a
// metric stay as they are: a rehearsal emits what is due since long ago.
func alerts(t *testing.T) (all []alert, shortened string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/alerts/eventsv2.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	units := map[string]int{"m": 60_000, "h": 3_600_000}
	shortened = regexp.MustCompile(`(\[|offset |for: )(\d+)([mh])`).ReplaceAllStringFunc(string(text), func(found string) string {
		parts := regexp.MustCompile(`^(\D+)(\d+)([mh])$`).FindStringSubmatch(found)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s%dms", parts[1], n*units[parts[3]]/faster)
	})
	return all, shortened
}

// rehearsal is a fault in a deployment, with the server that notices it and the section of the run book that says
// what to do.
type rehearsal struct {
	*rig
	*prometheus
	alert string
	parts map[string][]string // the commands of the section, by the word that it begins with in bold
	words map[string]string   // what stands in this deployment for what the section has as an example
}

// rehearse begins the rehearsal of an alert, with the programs that are scraped.
func (r *rig) rehearse(name string, scraped ...*program) *rehearsal {
	r.t.Helper()
	all, shortened := alerts(r.t)
	h := &rehearsal{rig: r, prometheus: r.prometheus(shortened, scraped...), alert: name, parts: map[string][]string{}, words: map[string]string{
		"6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11": canvas.String(), "order_placed": "greet",
	}}
	for _, a := range all {
		if a.Alert == name {
			h.read(a.Annotations.Runbook)
			return h
		}
	}
	r.t.Fatalf("deploy/alerts has no alert %s", name)
	return nil
}

// read reads a section of the run book, by its link.
func (h *rehearsal) read(link string) {
	h.rig.t.Helper()
	page, anchor, _ := strings.Cut(link, "#")
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		h.rig.t.Fatal(err)
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, section, _ := strings.Cut(section, "\n")
		if strings.ReplaceAll(strings.ToLower(title), " ", "-") != anchor {
			continue
		}
		part := ""
		for line := range strings.Lines(section) {
			if bold := regexp.MustCompile(`^\*\*(\w+)`).FindStringSubmatch(line); bold != nil {
				part = bold[1]
			}
			if command, ok := strings.CutPrefix(line, "    "); ok {
				h.parts[part] = append(h.parts[part], strings.TrimSpace(command))
			}
		}
		return
	}
	h.rig.t.Fatalf("%s has no section for %s", page, h.alert)
}

// of puts events in place of those that the section has as an example.
func (h *rehearsal) of(ids ...eventqueue.EventID) {
	for i, id := range ids {
		h.words[strconv.Itoa(17+i)] = fmt.Sprint(id)
	}
}

// fires waits until the alert does, while something is done again and again.
func (h *rehearsal) fires(meanwhile ...func()) {
	h.rig.t.Helper()
	h.becomes(true, meanwhile)
}

// resolves waits until the alert no longer fires.
func (h *rehearsal) resolves(meanwhile ...func()) {
	h.rig.t.Helper()
	h.becomes(false, meanwhile)
}

func (h *rehearsal) becomes(firing bool, meanwhile []func()) {
	h.rig.t.Helper()
	query := fmt.Sprintf("ALERTS{alertname=%q, alertstate=\"firing\"}", h.alert)
	testenv.Eventually(h.rig.t, fmt.Sprintf("%s fires: %t", h.alert, firing), func() bool {
		for _, do := range meanwhile {
			do()
		}
		return h.hasData(query) == firing
	})
}

// run runs the commands of a part of the section, and returns what they say. Each has to succeed.
func (h *rehearsal) run(part string) (said string) {
	h.rig.t.Helper()
	if len(h.parts[part]) == 0 {
		h.rig.t.Fatalf("the section of %s has no commands under %q", h.alert, part)
	}
	for _, line := range h.parts[part] {
		said += h.command(line)
	}
	return said
}

// command runs a line of the section as whoever reads it would.
func (h *rehearsal) command(line string) string {
	h.rig.t.Helper()
	for example, word := range h.words {
		line = regexp.MustCompile(`\b`+regexp.QuoteMeta(example)+`\b`).ReplaceAllLiteralString(line, word)
	}
	if strings.HasPrefix(line, "SELECT ") {
		return h.sql(line)
	}
	cmd := exec.CommandContext(testenv.Context(h.rig.t), "sh", "-c", line)
	cmd.Env = h.env(map[string]string{"PATH": binaries + string(filepath.ListSeparator) + h.environment["PATH"]})
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.rig.t.Fatalf("the run book's %s: %v\n%s", line, err, out)
	}
	h.rig.t.Logf("$ %s\n%s", line, out)
	return string(out)
}

// sql returns the output of psql for a statement.
func (h *rehearsal) sql(statement string) string {
	h.rig.t.Helper()
	cmd := exec.CommandContext(testenv.Context(h.rig.t), testenv.Program(h.rig.t, "postgresql-client", "psql"), "--no-psqlrc", "-c", statement, h.environment["DATABASE_URL"])
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.rig.t.Fatalf("%s: %v\n%s", statement, err, out)
	}
	return string(out)
}

// says fails the test unless a text has each of these.
func (h *rehearsal) says(text string, want ...string) {
	h.rig.t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			h.rig.t.Errorf("the run book's commands do not show %q but\n%s", w, text)
		}
	}
}

// dueSince has what waits be due since an hour ago.
func (h *rehearsal) dueSince(id ...eventqueue.EventID) {
	h.rig.t.Helper()
	if _, err := h.pool.Exec(testenv.Context(h.rig.t), `UPDATE events_v2 SET enqueued_at = now() - interval '1 hour', delay_until = now() - interval '1 hour'
		WHERE id = ANY ($1)`, id); err != nil {
		h.rig.t.Fatal(err)
	}
}
