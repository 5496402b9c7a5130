package report

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestMachineSaysSomethingAboutEachPart(t *testing.T) {
	t.Parallel()
	want := []string{"processor", "memory", "system", "Go"}
	facts := Machine()
	if len(facts) != len(want) {
		t.Fatalf("the facts are %v, want %v", facts, want)
	}
	for i, f := range facts {
		if f.Name != want[i] || f.Value == "" || f.Value != strings.TrimSpace(f.Value) {
			t.Errorf("fact %d is %q, want something about %s", i, f, want[i])
		}
		if runtime.GOOS == "linux" && f.Name == "memory" && f.Value == unknown {
			t.Error("Linux tells how much memory there is, and it was not read")
		}
	}
}

func TestProcessorAndMemory(t *testing.T) {
	t.Parallel()
	const cpuinfo = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 2\nmodel name\t: AMD EPYC: 9\n\nprocessor\t: 1\nmodel name\t: other\n"
	const unknownProcessor = "processor of an unknown model"
	for text, want := range map[string]string{cpuinfo: "AMD EPYC: 9", "": unknownProcessor, "model name": unknownProcessor, "CPU part\t: 0xd0c\n": unknownProcessor} {
		if got := processor(text); got != want {
			t.Errorf("the processor of %q is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"MemTotal:       24684092 kB\nMemFree:        1 kB\n": "23.5 GiB",
		"MemFree:        1 kB\n":                              unknown,
		"MemTotal:       24684092\n":                          unknown,
		"MemTotal:       much kB\n":                           unknown,
		"":                                                    unknown,
	} {
		if got := memory(text); got != want {
			t.Errorf("the memory of %q is %q, want %q", text, got, want)
		}
	}
}

func TestVersionOfADependency(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "example.com/queue/driver", Version: "v9.0.0"},
		{Path: "example.com/queue", Version: "v1.2.3"},
		{Path: "example.com/local", Version: "v0.0.0", Replace: &debug.Module{Path: "../"}},
	}}
	for path, want := range map[string]string{
		"example.com/queue": "v1.2.3", "example.com/local": "replaced by ../", "example.com/other": unknown,
	} {
		if got := versionIn(info, path); got != want {
			t.Errorf("the version of %s is %q, want %q", path, got, want)
		}
	}
}
