package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsStillSayWhatScenariosWaitFor: a scenario would notice a changed text only after minutes.
func TestProgramsStillSayWhatScenariosWaitFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../pubsubnotify/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	const publisher, subscriber = "roles/pubsub.publisher", "roles/pubsub.subscriber"
	// The sources have variables where a text has the project or a role.
	split := strings.NewReplacer(projectID, "\n", publisher, "\n"+publisher+"\n", subscriber, "\n"+subscriber+"\n")
	for _, says := range []naming{unreached, exhausted, goneTopic, goneSubscription, remade, lacks(publisher), lacks(subscriber)} {
		for part := range strings.Lines(split.Replace(says.ready + "\n" + says.log)) {
			if part = strings.TrimSuffix(part, "\n"); !strings.Contains(sources.String(), part) {
				t.Errorf("pubsubnotify does not say %q", part)
			}
		}
	}
}
