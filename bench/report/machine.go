package report

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

const unknown = "unknown"

// Machine describes the machine, as far as the system reports it.
func Machine() []Fact {
	return []Fact{
		{"processor", fmt.Sprintf("%s, %d cores", processor(read("/proc/cpuinfo")), runtime.NumCPU())},
		{"memory", memory(read("/proc/meminfo"))},
		{"system", strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + read("/proc/sys/kernel/osrelease"))},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
	}
}

// read returns the text of a file; empty if it does not exist.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// processor is the model in a text like /proc/cpuinfo.
func processor(cpuinfo string) string {
	if model := field(cpuinfo, "model name"); model != "" {
		return model
	}
	return "processor of an unknown model"
}

// memory is the whole in a text like /proc/meminfo.
func memory(meminfo string) string {
	number, isKilobytes := strings.CutSuffix(field(meminfo, "MemTotal"), " kB")
	kilobytes, err := strconv.ParseFloat(number, 64)
	if err != nil || !isKilobytes {
		return unknown
	}
	return strconv.FormatFloat(kilobytes/(1<<20), 'f', 1, 64) + " GiB"
}

// field is the first value of a name in lines of "name: value"; empty when there
// is none.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Commit is the commit that is measured, as git names it.
func Commit() string {
	out, err := exec.Command("git", "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty= with changes").Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(out))
}

// Dependency is the version of a module that is built into the program.
func Dependency(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return versionIn(info, path)
}

func versionIn(info *debug.BuildInfo, path string) string {
	for _, module := range info.Deps {
		if module.Path != path {
			continue
		}
		if r := module.Replace; r != nil {
			return strings.TrimSpace("replaced by " + r.Path + " " + r.Version)
		}
		return module.Version
	}
	return unknown
}
