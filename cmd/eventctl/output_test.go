package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.uber.org/zap"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 12*time.Second + 999*time.Millisecond: "12s", 192 * time.Second: "3m12s",
		5*time.Hour + 3*time.Minute + 9*time.Second: "5h3m", 55 * time.Hour: "2d7h", 100 * 24 * time.Hour: "100d0h",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %s, want %s", d, got, want)
		}
	}
	now := time.Unix(1000, 0)
	if got := when(now.Add(time.Millisecond), now); got != "in 1s" {
		t.Errorf("what is not due yet is due %s", got)
	}
	if got := when(now, now); got != "0s ago" {
		t.Errorf("what is due is due %s", got)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ünïcode 日本": "plain ünïcode 日本", "": "", `back\slash`: `back\slash`,
		"a\x1b[2Jb": `"a\x1b[2Jb"`, "bidi\u202e": `"bidi\u202e"`, "c1\u009b": `"c1\u009b"`, "bad\xff": `"bad\xff"`, "two\nlines": `"two\nlines"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
	if got := printableLines("one\ntwo\x1b\u009b\xff"); got != "one\ntwo\\x1b\\u009b\uFFFD" {
		t.Errorf("printableLines gave %q", got)
	}
}

func FuzzPrintableJSON(f *testing.F) {
	f.Add([]byte("{\"a\":\r\n\t\"\u009b\u202e\U000e0001\x7f\"}"))
	f.Add([]byte(`"\u001b"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after any
		if json.Unmarshal(text, &before) != nil {
			return // only JSON is printed
		}
		safe := printableJSON(text)
		if err := json.Unmarshal(safe, &after); err != nil {
			t.Fatalf("%q became %q: %v", text, safe, err)
		}
		b, _ := json.Marshal(before)
		a, _ := json.Marshal(after)
		if !bytes.Equal(a, b) {
			t.Errorf("%q became %q", text, safe)
		}
		if strings.ContainsFunc(string(safe), func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("%q is not printable", safe)
		}
	})
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	a := &app{stderr: &stderr}
	log := a.logger().With(zap.Error(errors.New("no\x1bluck")))
	log.Info("not shown")
	log.Warn("shown")
	a.logger().Warn("alone")
	a.json = true
	log.Warn("shown")
	want := "eventctl: warning: shown: no\\x1bluck\neventctl: warning: alone\n" + `{"warning":"shown: no\u001bluck"}` + "\n"
	if stderr.String() != want {
		t.Errorf("stderr:\n%swant:\n%s", &stderr, want)
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	a := &app{stderr: &stderr}
	for _, hidden := range []func(){func() {}, func() { a.terminal, a.json = true, true }} {
		hidden()
		p := a.progress("emit", 10)
		p.add(10)
		p.end()
	}
	if stderr.Len() > 0 {
		t.Errorf("a bar is drawn where nobody watches: %q", &stderr)
	}
	a.terminal, a.json = true, false
	p := a.progress("emit", 10)
	p.add(5)
	p.end()
	if !strings.Contains(stderr.String(), "emit") || isTerminal(&stderr) {
		t.Errorf("no bar is drawn on a terminal: %q", &stderr)
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	if got := brief(strings.Repeat("ü", 60)); got != strings.Repeat("ü", 40)+"…" {
		t.Errorf("brief cut to %q", got)
	}
	if got := brief("a\x1b"); got != `"a\x1b"` {
		t.Errorf("brief gave %q", got)
	}
}
