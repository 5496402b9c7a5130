// Package buildinfo describes the build of a program, for --version.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
)

// Template is the template of a command for --version: name, version and build on one line.
const Template = "{{.Name}} {{.Version}}\n"

// Version describes the build of this program: the version of the module, the commit if the
// go command has recorded it, and the version of Go.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	details := []string{}
	if revision := settings["vcs.revision"]; revision != "" {
		commit := "commit " + revision
		if settings["vcs.modified"] == "true" {
			commit += " with changes"
		}
		details = append(details, commit)
	}
	if at := settings["vcs.time"]; at != "" {
		details = append(details, at)
	}
	details = append(details, info.GoVersion)
	return fmt.Sprintf("%s (%s)", cmp.Or(info.Main.Version, "(devel)"), strings.Join(details, ", "))
}
