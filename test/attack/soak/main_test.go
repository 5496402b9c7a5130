package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"eventsv2/test/command"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := parseOptions([]string{"-hours", "0.05", "-report", "r.md", "-every", "10s", "-rate", "7"}, nil)
	if err != nil || o.load() != 3*time.Minute || o.Report != "r.md" || o.every != 10*time.Second || o.Rate != 7 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err = parseOptions(nil, nil); err != nil || o.load() != time.Hour || o.Rate != 100 || o.every != time.Minute {
		t.Errorf("the defaults are %+v, %v", o, err)
	}
}

func TestAWrongCommandLineEndsWithTwo(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-hours 0", "-hours -1", "-hours NaN", "-hours 169", "-hours soon", "-rate 0", "-rate 10001",
		"-every 1s", "-drain 0s", "-minutes 5", "extra"} {
		var out, errs bytes.Buffer
		if status := run(context.Background(), strings.Fields(args), &out, &errs); status != command.ExitUsage {
			t.Errorf("%s: status %d, want %d", args, status, command.ExitUsage)
		}
		if !strings.HasPrefix(errs.String(), "soak: ") || out.Len() > 0 {
			t.Errorf("%s: it says %q and %q", args, out.String(), errs.String())
		}
	}
	var errs bytes.Buffer
	if status := run(context.Background(), []string{"-help"}, &errs, &errs); status != command.ExitOK || !strings.Contains(errs.String(), "-hours") {
		t.Errorf("-help: status %d, %q", status, errs.String())
	}
}

func TestAProcessIsMeasured(t *testing.T) {
	t.Parallel()
	if n, err := openFiles(os.Getpid()); err != nil || n < 3 {
		t.Errorf("%g files, %v", n, err)
	}
	if size, err := privateMemory(os.Getpid()); err != nil || size < 4096 {
		t.Errorf("%g bytes, %v", size, err)
	}
}
