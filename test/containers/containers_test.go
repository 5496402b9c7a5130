package containers_test

import (
	"context"
	"testing"
)

// TestContainers makes the images once and runs everything that needs them.
func TestContainers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	// Parallel subtests outlive this function.
	t.Cleanup(cancel)
	requireEngine(ctx, t)
	base := map[string]string{}
	for _, i := range baseImages() {
		base[i.variable] = i.find(ctx, t)
	}

	t.Run("services", func(t *testing.T) {
		t.Parallel()
		testServices(ctx, t, base)
	})
	t.Run("image", func(t *testing.T) {
		t.Parallel()
		app := unique("app")
		atEnd(t, docker("rmi", "--force", app))
		docker("build", "--build-arg", "GO_IMAGE="+base["GO_IMAGE"], "--build-arg", "GOPROXY", "--build-arg", "VERSION=test", "--build-arg", "REVISION=0123abc", "-t", app, ".").must(ctx, t)
		// The subtests end before the image is removed.
		t.Run("content", func(t *testing.T) {
			t.Parallel()
			testImage(ctx, t, app)
		})
		t.Run("compose", func(t *testing.T) {
			t.Parallel()
			testCompose(ctx, t, app, base)
		})
		t.Run("cut off", func(t *testing.T) {
			t.Parallel()
			testCutOff(ctx, t, app, base)
		})
	})
}
