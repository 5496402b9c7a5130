package printing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/zap"
)

func TestPrintableQuotesControlCharacters(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ünïcode 日本": "plain ünïcode 日本", "": "", `back\slash`: `back\slash`,
		"a\x1b[2Jb": `"a\x1b[2Jb"`, "bidi\u202e": `"bidi\u202e"`, "c1\u009b": `"c1\u009b"`, "bad\xff": `"bad\xff"`, "two\nlines": `"two\nlines"`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %s, want %s", in, got, want)
		}
	}
	if got := PrintableLines("one\ntwo\x1b\u009b\xff"); got != "one\ntwo\\x1b\\u009b\uFFFD" {
		t.Errorf("PrintableLines gave %q", got)
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
		safe := PrintableJSON(text)
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

func TestMessagesGoToStandardError(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	p := New("tool", io.Discard, &stderr)
	log := p.Logger().With(zap.Error(errors.New("no\x1bluck")))
	log.Info("not shown")
	log.Warn("shown")
	p.Logger().Warn("alone")
	p.Error(errors.New("failed\x1b"))
	p.JSON = true
	log.Warn("shown")
	p.Error(errors.New("failed"))
	want := "tool: warning: shown: no\\x1bluck\ntool: warning: alone\ntool: failed\\x1b\n" +
		`{"warning":"shown: no\u001bluck"}` + "\n" + `{"error":"failed"}` + "\n"
	if stderr.String() != want {
		t.Errorf("stderr:\n%swant:\n%s", &stderr, want)
	}
}

func TestResultIsPrintedAsTextOrJSON(t *testing.T) {
	t.Parallel()
	var stdout strings.Builder
	p := New("tool", &stdout, io.Discard)
	result := func() {
		t.Helper()
		err := p.Result(map[string]string{"a": "<\u009b>"}, func(w io.Writer) {
			List(w, [][]string{{"A", "LONG"}, {"1", "2"}}, "things")
			List(w, [][]string{{"A"}}, "things")
		})
		if err != nil {
			t.Error(err)
		}
	}
	result()
	p.JSON = true
	result()
	if want := "A  LONG\n1  2\nno things\n" + `{"a":"<\u009b>"}` + "\n"; stdout.String() != want {
		t.Errorf("stdout:\n%swant:\n%s", &stdout, want)
	}
}

func TestProgressIsPrintedToTerminalsOnly(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	p := New("tool", io.Discard, &stderr)
	draw := func(terminal, asJSON bool) {
		p.terminal, p.JSON = terminal, asJSON
		bar := p.Progress("emit", 10, "events")
		bar.Add(5)
		bar.End()
	}
	draw(false, false)
	draw(true, true)
	if stderr.Len() > 0 {
		t.Errorf("a bar is drawn where nobody watches: %q", &stderr)
	}
	draw(true, false)
	if !strings.Contains(stderr.String(), "emit") || isTerminal(&stderr) {
		t.Errorf("no bar is drawn on a terminal: %q", &stderr)
	}
}

func TestBriefCutsLongTexts(t *testing.T) {
	t.Parallel()
	if got := Brief(strings.Repeat("ü", 60)); got != strings.Repeat("ü", 40)+"…" {
		t.Errorf("Brief cut to %q", got)
	}
	if got := Brief("a\x1b"); got != `"a\x1b"` {
		t.Errorf("Brief gave %q", got)
	}
}
