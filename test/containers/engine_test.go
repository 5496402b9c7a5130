package containers_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"eventsv2/test/testenv"
)

const (
	// limit is for everything together: building every image and all the tests,
	// on a busy machine.
	limit = 25 * time.Minute
	// cleanupLimit is for removing what a test made.
	cleanupLimit = 2 * time.Minute
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is a program to run.
type call struct {
	name string
	args []string
	env  []string // beside that of the test
}

func docker(args ...string) call { return call{name: "docker", args: args} }

// output runs the program and returns what it printed to stdout.
func (c call) output(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), c.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// What the program started may hold the pipes after its end.
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", c.name, strings.Join(c.args, " "), err, tail(stdout.String()), tail(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// must is output for a program that may not fail.
func (c call) must(ctx context.Context, t *testing.T) string {
	t.Helper()
	out, err := c.output(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// atEnd runs the programs when the test is over, however it ends.
func atEnd(t *testing.T, calls ...call) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		for _, c := range calls {
			if _, err := c.output(ctx); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
	})
}

// tail returns the last lines of a log.
func tail(text string) string {
	const lines = 40
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n") + "\n"
}

// repository is the root of the repository, seen from this package.
var repository = filepath.Join("..", "..")

// requireEngine skips the test where no container engine answers.
func requireEngine(ctx context.Context, t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, NOT TESTED: containers take minutes, and -short is set")
	}
	if _, err := docker("version").output(ctx); err != nil {
		testenv.Missing(t, "the Dockerfile, docker-compose.yml and the containers of test/services need a container engine, and none answers: %v", err)
	}
}

// image is one of the base images.
type image struct {
	variable string // names it
	official string
	standIn  string // its name to the script
}

// baseImages are needed by the tests, in the order in which they are searched for.
func baseImages() []image {
	return []image{
		{"POSTGRES_IMAGE", "postgres:17.6", "postgres"},
		{"PUBSUB_EMULATOR_IMAGE", "gcr.io/google.com/cloudsdktool/google-cloud-cli:577.0.0-emulators", "pubsub"},
		{"GO_IMAGE", "golang:1.26.11", "golang"},
		{"PROMETHEUS_IMAGE", "prom/prometheus:v3.5.0", "prometheus"},
	}
}

// find returns the name of an image that the engine has: the one that the
// environment names, the official one, or a stand-in for it.
func (i image) find(ctx context.Context, t *testing.T) string {
	t.Helper()
	name, named := os.LookupEnv(i.variable)
	if !named || name == "" {
		name = i.official
	}
	if _, err := docker("image", "inspect", name).output(ctx); err == nil {
		return name
	}
	_, pullErr := docker("pull", "--quiet", name).output(ctx)
	if pullErr == nil {
		return name
	}
	t.Logf("making a stand-in for %s, because it cannot be pulled: %v", name, pullErr)
	out, err := call{name: filepath.Join("test", "images", "build.sh"), args: []string{i.standIn}}.output(ctx)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		testenv.Missing(t, "there is neither %s nor a stand-in: %v", name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, standIn, ok := strings.Cut(out, i.variable+"=")
	if !ok {
		t.Fatalf("build.sh %s printed %q: want the assignment of %s", i.standIn, out, i.variable)
	}
	return standIn
}

// unique returns a name that nothing else on the engine has.
func unique(what string) string {
	return "eventsv2-test-" + what + "-" + strings.ToLower(rand.Text()[:8])
}

// scratchImage builds a Go program of this folder and makes it the only file of
// an image.
func scratchImage(ctx context.Context, t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	call{
		name: "go",
		args: []string{"build", "-buildvcs=false", "-trimpath", "-o", filepath.Join(dir, "program"), "./test/containers/" + program},
		env:  []string{"CGO_ENABLED=0", "GOOS=linux"},
	}.must(ctx, t)
	dockerfile := "FROM scratch\nCOPY program /program\nENTRYPOINT [\"/program\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	name := unique(program)
	docker("build", "--quiet", "-t", name, dir).must(ctx, t)
	atEnd(t, docker("rmi", "--force", name))
	return name
}

// eventually tries until it works or ctx ends, and then fails the test with the
// last reason why it did not.
func eventually(ctx context.Context, t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v: %v", what, context.Cause(ctx), err)
		}
	}
}
