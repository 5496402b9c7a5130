package report

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// exampleRun has one of each kind of measure, and texts that Markdown and XML
// would take for something else.
func exampleRun() Run {
	f := NewFigures()
	for _, round := range []struct{ ours, backlog, river, p50, riverP50 float64 }{
		{123456, 110000, 24000, 1.25, 5.5}, {130000, 129000, 25000, 1.5, 5}, {128000, 99000, 26000, 1, 4.5},
	} {
		f.Add("drain.memory", "events/s", round.ours)
		f.Add("drain.river", "events/s", round.river)
		f.Add("backlog.million", "events/s", round.backlog)
		f.Add("latency.memory.p50", "ms", round.p50)
		f.Add("latency.river.p50", "ms", round.riverP50)
		f.Add("wal.ours", "B/event", 990)
		f.Add("statements.ours", "/event", 0.0123)
	}
	f.Add("emulator.added.p50", "ms", -0.25)
	f.Add("idle.worker", "per min", 0)
	f.Add("idle.relay", "per min", 7)
	f.Add("memory.growth", "", 1.1)
	f.Note(1.9, 0.05)
	f.Note(1.8, 0.25)
	f.Note(1.8, 0.02)
	return Run{
		Figures: f,
		Results: f.Results([]Measure{
			{Name: "drain", Of: "drain.memory", By: "drain.river", Goal: AtLeast(5), Text: "drain 100,000 events"},
			{Name: "drain-million", Of: "backlog.million", By: "drain.memory", Goal: AtLeast(0.9), Text: "drain 1,000,000 events, against our own"},
			{Name: "latency-p50", Of: "latency.memory.p50", By: "latency.river.p50", Goal: AtMost(0.6), Text: "emit → handler starts"},
			{Name: "emulator", Of: "emulator.added.p50", Goal: AtMost(3), Unit: "ms", Text: "less than nothing"},
			{Name: "wal", Of: "wal.ours", Goal: AtMost(800), Unit: "B", Text: "WAL per event"},
			{Name: "statements", Of: "statements.ours", Goal: AtMost(0.02), Text: "statements per event"},
			{Name: "idle-worker", Of: "idle.worker", Goal: AtMost(0), Unit: "per min", Text: "statements of an idle worker"},
			{Name: "idle-relay", Of: "idle.relay", Goal: AtMost(6), Unit: "per min", Text: "statements of the relay"},
			{Name: "memory-growth", Of: "memory.growth", Goal: AtMost(1.2), Text: "a | b <c>"},
			{Name: `<&"'>`, Of: "drain.memory", Goal: AtLeast(1e6), Unit: "<b>", Text: "hostile"},
		}),
		Facts: []Fact{{"processor", "A | B <C>\nD"}, {"Go", "1.26"}},
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, Benchmarks.File)
	copyFile(t, filepath.Join("testdata", "before.md"), page)
	for range 2 { // what one run has written is what the next one replaces
		if err := Write(dir, Benchmarks, exampleRun()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{Benchmarks.File, Benchmarks.Chart} {
			isGolden(t, filepath.Join(dir, name), filepath.Join("testdata", name))
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Errorf("there are %v, want the page and the chart only", files)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: %v, %v; want a file that all may read", file.Name(), info, err)
		}
	}
}

func isGolden(t *testing.T, path, golden string) {
	t.Helper()
	if *update {
		copyFile(t, path, golden)
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if string(got) != string(want) {
		t.Errorf("the file is not %s; read the difference that make golden makes. It is\n%s", golden, got)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStalePageIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, page, says string }{
		{"no markers", "# Benchmarks\n", begin + " 0 times"},
		{"no end", "a\n" + begin + "\n", end + " 0 times"},
		{"two begins", begin + "\n" + begin + "\n" + end + "\n", begin + " 2 times"},
		{"two ends", begin + "\n" + end + "\n" + end + "\n", end + " 2 times"},
		{"the wrong order", end + "\n" + begin + "\n", "put them in the other order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, Benchmarks.File)
			if err := os.WriteFile(path, []byte(c.page), 0o644); err != nil {
				t.Fatal(err)
			}
			for name, err := range map[string]error{"CheckPage": CheckPage(dir, Benchmarks), "Write": Write(dir, Benchmarks, exampleRun())} {
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s says %v, want something with %q and the path", name, err, c.says)
				}
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != c.page {
				t.Errorf("the page has become %q, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(dir, Benchmarks.Chart)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a chart was written beside a page that cannot refer to it: %v", err)
			}
		})
	}
}

func TestNoPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, err := range map[string]error{"CheckPage": CheckPage(dir, Benchmarks), "Write": Write(dir, Benchmarks, exampleRun())} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "-write takes the directory of "+Benchmarks.File) {
			t.Errorf("%s says %v, want that there is no page, and what to do", name, err)
		}
	}
}

func TestFailedReplaceLeavesNoFileBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, Benchmarks.Chart)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replace(path, "text"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("writing over a directory says %v, want an error with the path", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("there are %v, %v; want the directory only", files, err)
	}
}

// TestProjectsPagesAreUpToDate holds the pages in docs/ and the program together.
func TestProjectsPagesAreUpToDate(t *testing.T) {
	t.Parallel()
	for _, page := range []Page{Benchmarks, Growth} {
		if err := CheckPage(filepath.Join("..", "..", "docs"), page); err != nil {
			t.Error(err)
		}
	}
}

func TestChartIsXMLWithUnchangedTexts(t *testing.T) {
	t.Parallel()
	results := exampleRun().Results
	results = append(results, Result{Measure{Name: "not XML: \x00\xff", Goal: AtLeast(1)}, 1})
	texts := map[string]bool{}
	decoder := xml.NewDecoder(strings.NewReader(chart(results)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts[string(text)] = true
		}
	}
	for _, want := range []string{`<&"'>`, "≥ 1,000,000 <b>", "not XML: ��", "drain-million", "short", "ok"} {
		if !texts[want] {
			t.Errorf("the chart does not say %q; it says %v", want, texts)
		}
	}
}
