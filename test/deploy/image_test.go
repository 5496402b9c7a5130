package deploy_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue/httptarget"
)

// TestBuildsOfTheImageNameVersionAndRevision reads the commands of the pages: without these arguments the programs of
// the image do not know what they are.
func TestBuildsOfTheImageNameVersionAndRevision(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	builds := 0
	for _, page := range append(pages, root+"/README.md", root+"/Dockerfile") {
		for _, command := range regexp.MustCompile(`docker build .*`).FindAllString(read(t, page), -1) {
			builds++
			if !strings.Contains(command, "--build-arg VERSION=") || !strings.Contains(command, `--build-arg REVISION="$(git rev-parse HEAD)"`) {
				t.Errorf("%s: %s names no version or no revision", page, command)
			}
		}
	}
	if builds < 3 {
		t.Errorf("%d commands build the image: this test reads them no longer", builds)
	}
}

// TestComposeProjectHasItsOwnNames: a shell that is set up for another queue changes nothing.
func TestComposeProjectHasItsOwnNames(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`\$\{?([A-Z0-9_]+)`).FindAllStringSubmatch(read(t, root+"/docker-compose.yml"), -1)
	if len(names) < 10 {
		t.Fatalf("docker-compose.yml reads %d variables: this test reads them no longer", len(names))
	}
	for _, name := range names {
		if name[1] != "NAME" && !strings.HasPrefix(name[1], "EVENTSV2_") && !strings.HasSuffix(name[1], "_IMAGE") {
			t.Errorf("docker-compose.yml reads %s, which may be set for something else: call it EVENTSV2_%[1]s", name[1])
		}
	}
}

// TestSampleHandlersOfComposeHaveTargets: they are services of docker-compose.yml.
func TestSampleHandlersOfComposeHaveTargets(t *testing.T) {
	t.Parallel()
	var compose struct{ Services map[string]any }
	if err := yaml.Unmarshal([]byte(read(t, root+"/docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	file, err := httptarget.Load(root + "/test/containers/handlers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range file.Entries {
		if target, err := url.Parse(entry.Target()); err != nil || compose.Services[target.Hostname()] == nil {
			t.Errorf("%s is posted to %s (%v), which docker-compose.yml does not start", entry.Key, entry.Target(), err)
		}
	}
}
