package containers_test

import (
	"context"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// testServices runs test/services where there is nothing but the engine: in an
// empty container that may use the engine's socket. What it starts are siblings
// of that container, with ports on the machine's loopback interface, which the
// container shares.
func testServices(ctx context.Context, t *testing.T, base map[string]string) {
	// Names that only this test uses, so that it finds what it left behind.
	postgres, emulator := unique("postgres"), unique("pubsub")
	docker("tag", base["POSTGRES_IMAGE"], postgres).must(ctx, t)
	atEnd(t, docker("rmi", "--force", postgres))
	docker("tag", base["PUBSUB_EMULATOR_IMAGE"], emulator).must(ctx, t)
	atEnd(t, docker("rmi", "--force", emulator))
	program := scratchImage(ctx, t, "onlydocker")

	socket := docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").must(ctx, t)
	path, local := strings.CutPrefix(socket, "unix://")
	if !local {
		testenv.Missing(t, "the engine is at %s: giving a container its socket needs one on this machine", socket)
	}
	t.Cleanup(func() { removeContainersOf(t, postgres, emulator) })
	// The reaper would be one more image to pull; onlydocker stops what it starts.
	out := docker("run", "--rm", "--network", "host",
		"--volume", path+":/var/run/docker.sock", "--tmpfs", "/tmp",
		"--env", "POSTGRES_IMAGE="+postgres, "--env", "PUBSUB_EMULATOR_IMAGE="+emulator,
		"--env", "TESTCONTAINERS_RYUK_DISABLED=true", "--env", "TESTCONTAINERS_HOST_OVERRIDE=localhost",
		program).must(ctx, t)
	want := "docker image " + postgres + "\ndocker image " + emulator
	if out != want {
		t.Errorf("the services come from\n%s\nwant\n%s", out, want)
	}
	for _, image := range []string{postgres, emulator} {
		if left := containersOf(ctx, t, image); len(left) > 0 {
			t.Errorf("Stop left containers of %s behind: %v", image, left)
		}
	}
}

// containersOf returns the ids of the containers that were made of exactly this
// name; the engine's own filter would also find those of other names for the same
// image.
func containersOf(ctx context.Context, t *testing.T, image string) []string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(docker("ps", "--all", "--format", "{{.ID}} {{.Image}}").must(ctx, t)) {
		if id, of, _ := strings.Cut(strings.TrimSpace(line), " "); of == image {
			ids = append(ids, id)
		}
	}
	return ids
}

// removeContainersOf removes what a run that failed left behind.
func removeContainersOf(t *testing.T, images ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
	defer cancel()
	for _, image := range images {
		for _, id := range containersOf(ctx, t, image) {
			docker("rm", "--force", "--volumes", id).must(ctx, t)
		}
	}
}
