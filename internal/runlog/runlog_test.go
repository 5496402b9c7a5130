package runlog

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestLastLinesAreRetained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines int
		line  string
		note  string
		last  int // how many lines are left
	}{
		"none":                 {0, "", "", 0},
		"one":                  {1, "a", "", 1},
		"as many as there may": {50, "a", "", 50},
		"one more":             {51, "a", "1 line before these is left out\n", 50},
		"many":                 {1000, "a", "950 lines before these are left out\n", 50},
		"long ones":            {20, strings.Repeat("é", 500), "12 lines before these are left out\n", 8},
		"one that is too long": {1, strings.Repeat("é", MaxBytes), "", 1},
		"two of them":          {2, strings.Repeat("x", MaxBytes), "1 line before these is left out\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l Log
			for i := range c.lines {
				l.Add(fmt.Sprint(i, " ", c.line))
			}
			text := l.Text()
			if len(text) > MaxBytes || !utf8.ValidString(text) {
				t.Errorf("it has %d bytes", len(text))
			}
			rest, noted := strings.CutPrefix(text, c.note)
			got := strings.Split(rest, "\n")
			if rest == "" {
				got = nil
			}
			if !noted || len(got) != c.last {
				t.Fatalf("%d lines in %.100q, want %d after %q", len(got), text, c.last, c.note)
			}
			for i, line := range got {
				if !strings.HasPrefix(line, fmt.Sprint(c.lines-c.last+i, " ")) {
					t.Errorf("line %d is %.20q", i, line)
				}
			}
			if l.End() != text || l.Text() != "" || l.End() != "" {
				t.Error("the end has another text, or leaves one")
			}
		})
	}
}

func TestTextsThatPostgresRefusesAreReplaced(t *testing.T) {
	t.Parallel()
	var l Log
	l.Add("a\x00b\xffc")
	if got := l.End(); got != "a\uFFFDb\uFFFDc" {
		t.Errorf("%q", got)
	}
}

// TestManyAddAtOnce, beside the end: what is added after it is dropped, whenever it has begun.
func TestManyAddAtOnce(t *testing.T) {
	t.Parallel()
	var l Log
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 5 {
				l.Add("a line")
				l.Text()
			}
		})
	}
	all.Wait()
	if text := l.Text(); strings.Count(text, "a line") != maxLines || !strings.HasPrefix(text, "50 lines ") {
		t.Errorf("after 100 lines: %s", text)
	}
	for range 20 {
		all.Go(func() { l.Add("late") })
	}
	l.End()
	all.Wait()
	l.Add("later")
	if got := l.Text(); got != "" {
		t.Errorf("after the end it has %q", got)
	}
}

func TestEmptyLogAllocatesNothing(t *testing.T) {
	var l *Log
	if n := testing.AllocsPerRun(100, func() {
		var empty Log
		l = &empty
		_ = l.Text() + l.End()
	}); n > 1 { // the Log itself
		t.Errorf("%v allocations", n)
	}
}
