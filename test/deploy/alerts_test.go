package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"eventsv2/test/testenv"
)

const (
	root   = "../.."
	alerts = root + "/deploy/alerts"
)

type rule struct {
	Alert       string
	Expr        string
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Runbook string }
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, alerts+"/eventsv2.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("the file has no alerts")
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metricName matches the name of a metric of the programs in a query.
var metricName = regexp.MustCompile(`eventsv2_[a-z_]+|target_info`)

// metrics are the metrics of docs/telemetry.md as Prometheus calls them; the page's own test holds it to the code.
func metrics(t *testing.T) (names []string) {
	t.Helper()
	for _, match := range regexp.MustCompile("(?m)^\\| `[^`]+` \\| `([^`]+)`").FindAllStringSubmatch(read(t, root+"/docs/telemetry.md"), -1) {
		names = append(names, match[1])
	}
	return names
}

// TestAlertsUseExistingMetrics: docs/telemetry.md lists all metrics.
func TestAlertsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{"target_info": true} // of every program that reports with OpenTelemetry
	for _, name := range metrics(t) {
		documented[name] = true
	}
	for _, r := range rules(t) {
		names := metricName.FindAllString(r.Expr, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", r.Alert)
		}
		for _, n := range names {
			if !documented[n] {
				t.Errorf("%s asks for %s, which docs/telemetry.md does not list", r.Alert, n)
			}
		}
	}
}

// TestEachAlertHasItsSection in the run book, and each section its alert.
func TestEachAlertHasItsSection(t *testing.T) {
	t.Parallel()
	sections := map[string]string{} // their texts, by what links to them
	for _, section := range strings.Split(read(t, root+"/docs/runbook.md"), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		sections["docs/runbook.md#"+strings.ReplaceAll(strings.ToLower(title), " ", "-")] = text
	}
	linked := map[string]bool{}
	for _, r := range rules(t) {
		link := r.Annotations.Runbook
		linked[link] = true
		if !strings.Contains(sections[link], "**Symptom.** `"+r.Alert+"`") {
			t.Errorf("%s links to %s, which is no section about it", r.Alert, link)
		}
		if r.Annotations.Summary == "" || r.Labels.Severity != "page" && r.Labels.Severity != "ticket" {
			t.Errorf("%s has the summary %q and the severity %q", r.Alert, r.Annotations.Summary, r.Labels.Severity)
		}
	}
	for link, text := range sections {
		if !linked[link] {
			t.Errorf("no alert links to %s", link)
		}
		for _, part := range []string{"**Symptom.**", "**Look.**", "**Do", "**It worked**"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no part %s", link, part)
			}
		}
	}
}

// TestAlertsFireAndResolve has Prometheus' own tool evaluate them over series of faults that come and go.
func TestAlertsFireAndResolve(t *testing.T) {
	t.Parallel()
	const tests = "eventsv2_test.yaml"
	text := read(t, filepath.Join(alerts, tests))
	for _, r := range rules(t) {
		if fires := strings.Contains(text, "alertname: "+r.Alert+"\n        exp_alerts:\n"); !fires || !strings.Contains(text, "alertname: "+r.Alert+", exp_alerts: []}") {
			t.Errorf("%s has no test %s in which %s fires, or none in which it does not", alerts, tests, r.Alert)
		}
	}
	promtool := testenv.Program(t, "prometheus", "promtool")
	check := exec.CommandContext(t.Context(), promtool, "test", "rules", tests)
	check.Dir = alerts
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}
