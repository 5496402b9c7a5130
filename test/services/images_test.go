package services

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// images finds what is pulled: name and tag.
var (
	images = regexp.MustCompile(`(?:^|[\s"'=:{-])((?:[a-z0-9.-]+/)*(?:postgres|golang|google-cloud-cli|cloud-sdk|prom/prometheus|debian|alpine|busybox|ubuntu|node|python)[:@][A-Za-z0-9._:-]+)`)
	exact  = regexp.MustCompile(`(:v?\d+\.\d+(\.\d+)?[A-Za-z0-9.-]*|@sha256:[0-9a-f]{64})$`)
)

// TestNoImageIsFloating: everything that is pulled is named by an exact version, so
// that the same commit is the same program tomorrow, and the tests are the same tests.
func TestNoImageIsFloating(t *testing.T) {
	t.Parallel()
	found := 0
	for _, path := range []string{"../../Dockerfile", "../../docker-compose.yml", "../containers/engine_test.go", "docker.go",
		"../images/README.md", "../install"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			for _, match := range images.FindAllStringSubmatch(line, -1) {
				image := strings.TrimSuffix(match[1], "}")
				found++
				if !isExact(image) {
					t.Errorf("%s: %s is not an exact version, in %q", path, image, line)
				}
			}
			if strings.Contains(line, ":latest") {
				t.Errorf("%s: %q", path, line)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d images were found: the expression knows the names no more", found)
	}
	for image, want := range map[string]bool{"postgres:17": false, "postgres:17.6": true, "golang:1.26.11": true, "golang:alpine": false, "golang:1.26": false,
		"google-cloud-cli:emulators": false, "google-cloud-cli:577.0.0-emulators": true, "postgres": false} {
		if isExact(image) != want {
			t.Errorf("%s: an exact version is %v", image, !want)
		}
	}
}

// isExact tells whether a tag stays what it is. A version of Go has three numbers.
func isExact(image string) bool {
	return exact.MatchString(image) && (!strings.HasPrefix(image, "golang:") || strings.Count(image, ".") == 2)
}

// TestOneVersionOfGoIsUsed: the modules, and the image that the programs are built in.
func TestOneVersionOfGoIsUsed(t *testing.T) {
	t.Parallel()
	read := func(path, expression string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(expression).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not say which Go", path)
		}
		return string(found[1])
	}
	want := read("../../Dockerfile", `GO_IMAGE=golang:([0-9.]+)`)
	for path, expression := range map[string]string{"../../docker-compose.yml": `GO_IMAGE:-golang:([0-9.]+)`,
		"../containers/target/Dockerfile": `GO_IMAGE=golang:([0-9.]+)`,
		"../../go.mod":                    module, "../../bench/go.mod": module, "../attack/go.mod": module, "../deploycheck/go.mod": module} {
		if got := read(path, expression); got != want {
			t.Errorf("%s has Go %s, and the Dockerfile %s", path, got, want)
		}
	}
}

// module finds the version in a go.mod.
const module = `(?m)^go ([0-9]+\.[0-9]+\.[0-9]+)$`
