package setup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.uber.org/zap"

	"eventsv2/internal/setup"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestConfigurationPageMatchesTheConfiguration(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../../docs/configuration.md", "<!-- table -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks %q or %q", page, begin, end)
	}
	want := before + begin + setup.Table() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s is not what Config says; run: make golden", page)
	}
}

func TestLoadAppliesDefaults(t *testing.T) {
	t.Parallel()
	config, err := setup.Load(map[string]string{"DATABASE_URL": "x", "PUBSUB_EMULATOR_HOST": "h:1"})
	if err != nil {
		t.Fatal(err)
	}
	if config.LockTimeout != 0 || config.Concurrency != 500 || config.ProjectID != "local" || config.Port != "8080" || !config.UsesPubSub() {
		t.Errorf("the defaults are %+v", config)
	}
	for variable, value := range map[string]string{
		"LOCK_TIMEOUT": "soon", "WORKER_CONCURRENCY": "many", "PORT": "70000", "MAX_VALUE_BYTES": "-1",
		"PUBSUB_CREATE": "perhaps", "NOTIFIER": "kafka", "RELAY_INTERVAL": "0s", "DATABASE_MAX_CONNS": "0",
		"PUBLISH_TIMEOUT": "61s", "WORKER_MAX_EVENTS": "-1", "WORKER_TTL": "-1s",
		"HISTORY_COMPLETED_FOR": "-1h", "HISTORY_FAILED_FOR": "90d", "HISTORY_INTERVAL": "0s", "HISTORY_PER_SECOND": "0",
	} {
		if _, err := setup.Load(map[string]string{"DATABASE_URL": "x", variable: value}); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: the error %v does not name it", variable, value, err)
		}
	}
}

// TestPortMayBeAnAddress as well as a number, and says what is wrong with anything else.
func TestPortMayBeAnAddress(t *testing.T) {
	t.Parallel()
	for port, want := range map[string]string{"8080": ":8080", "0": ":0", "127.0.0.1:8080": "127.0.0.1:8080", "[::1]:80": "[::1]:80", ":9": ":9", "localhost:0": "localhost:0",
		"70000": "", "-1": "", "http": "", "127.0.0.1": "", "127.0.0.1:": "", "127.0.0.1:http": "", "::1": "", "tcp://10.0.0.1:80": ""} {
		address, err := setup.ListenAddress(port)
		if address != want || (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "127.0.0.1:8080") {
			t.Errorf("PORT=%s is %q, %v; want %q", port, address, err, want)
		}
	}
}

// TestLogHasNoControlCharacters that a terminal could obey, and its JSON says the same with their escapes.
func TestLogHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\u009b31m\u0085\x7f é £ \u202e"
	for _, style := range []string{"json", "console"} {
		var out bytes.Buffer
		log, err := setup.NewLogger(setup.LogConfig{Style: style, Level: "info"}, &out)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("m", zap.String("text", hostile), zap.Error(errors.New(hostile)))
		if line := strings.Trim(out.String(), "\n"); strings.ContainsFunc(strings.ReplaceAll(line, "\t", ""), unicode.IsControl) {
			t.Errorf("%s: %q", style, line)
		}
		var entry struct{ Text string }
		if style == "json" && (json.Unmarshal(out.Bytes(), &entry) != nil || entry.Text != hostile) {
			t.Errorf("%q is read as %q", out.String(), entry.Text)
		}
	}
}

func TestLogHasGooglesFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := setup.NewLogger(setup.LogConfig{Style: "json", Level: "debug"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("d")
	log.Info("i")
	log.Warn("w", zap.Duration("wait", 1500*time.Millisecond))
	log.Error("e")
	var severities []string
	for line := range strings.Lines(out.String()) {
		var entry struct{ Severity, Time, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.RFC3339Nano, entry.Time); err != nil {
			t.Error(err)
		}
		severities = append(severities, entry.Severity+" "+entry.Message)
	}
	if got := strings.Join(severities, ", "); got != "DEBUG d, INFO i, WARNING w, ERROR e" {
		t.Errorf("got %s", got)
	}
}
