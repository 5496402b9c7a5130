// Package buildinfo describes the build of a program, for --version.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Template is the template of a command for --version: name, version and build on one line.
const Template = "{{.Name}} {{.Version}}\n"

// version and revision are set by builds that know more than the go command does, with -ldflags -X: make build, and
// that of the image, which has no .git.
var version, revision string

// Version describes the build of this program: its version, its commit if that is known, and the version of Go.
func Version() string { return describe(build(), version, revision) }

// Short is the version of this program alone.
func Short() string { return short(build(), version) }

func build() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return info
}

func short(info *debug.BuildInfo, version string) string {
	return cmp.Or(version, info.Main.Version, "(devel)")
}

func describe(info *debug.BuildInfo, version, revision string) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	details := []string{}
	if revision != "" {
		details = append(details, "commit "+revision)
	} else if recorded := settings["vcs.revision"]; recorded != "" {
		commit := "commit " + recorded
		if settings["vcs.modified"] == "true" {
			commit += " with changes"
		}
		details = append(details, commit)
	}
	if at := settings["vcs.time"]; at != "" {
		details = append(details, at)
	}
	details = append(details, info.GoVersion)
	return fmt.Sprintf("%s (%s)", short(info, version), strings.Join(details, ", "))
}
