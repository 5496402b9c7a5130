package buildinfo

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.time", Value: "2030-01-31T09:00:00Z"}}
	for want, info := range map[string]*debug.BuildInfo{
		"(devel) (go1.26.11)": {GoVersion: "go1.26.11"},
		"v1.2.3 (go1.26.11)":  {GoVersion: "go1.26.11", Main: debug.Module{Version: "v1.2.3"}},
		"v1.2.3 (commit 0123abc, 2030-01-31T09:00:00Z, go1.26.11)": {GoVersion: "go1.26.11", Main: debug.Module{Version: "v1.2.3"}, Settings: commit},
		"(devel) (commit 0123abc with changes, 2030-01-31T09:00:00Z, go1.26.11)": {GoVersion: "go1.26.11",
			Settings: append(commit[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})},
	} {
		if got := describe(info); got != want {
			t.Errorf("described is %q, want %q", got, want)
		}
	}
	if v := Version(); !strings.Contains(v, "go1.") {
		t.Errorf("this build is %q", v)
	}
}
