package containers_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxImage is how large the image may be, in bytes.
const maxImage = 60 << 20

const certificates = "etc/ssl/certs/ca-certificates.crt"

// testImage examines the image of the Dockerfile and runs its programs.
func testImage(ctx context.Context, t *testing.T, app string) {
	t.Run("config", func(t *testing.T) {
		t.Parallel()
		testConfig(ctx, t, app)
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		testFiles(t, imageFiles(ctx, t, app))
	})
	t.Run("example handlers", func(t *testing.T) {
		t.Parallel()
		example, err := filepath.Abs("handlers.yaml")
		if err != nil {
			t.Fatal(err)
		}
		docker("run", "--rm", "--network", "none", "--volume", example+":/handlers.yaml:ro", app, "check", "/handlers.yaml").must(ctx, t)
	})
	for _, program := range programs() {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			// Everything is taken away that a program of this image may not need.
			run := func(flag string) string {
				return docker("run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", "--entrypoint", "/"+program, app, flag).must(ctx, t)
			}
			if out := run("--help"); !strings.Contains(out, program) {
				t.Errorf("%s --help printed %q: want its usage", program, out)
			}
			if out := run("--version"); !strings.HasPrefix(out, program+" test (commit 0123abc, go1.") {
				t.Errorf("%s --version printed %q: want the build arguments", program, out)
			}
		})
	}
}

// binary is the file that all programs are, by their names.
const binary = "eventsv2"

func programs() []string { return []string{"worker", "cron", "eventctl", binary} }

func testConfig(ctx context.Context, t *testing.T, app string) {
	var images []struct {
		Config struct {
			User       string
			Env        []string
			Entrypoint []string
			Labels     map[string]string
		}
		RootFS struct{ Layers []string }
		Size   int64
	}
	if err := json.Unmarshal([]byte(docker("image", "inspect", app).must(ctx, t)), &images); err != nil {
		t.Fatal(err)
	}
	image := images[0]
	if image.Config.User != "65532:65532" {
		t.Errorf("the user is %q: want 65532:65532", image.Config.User)
	}
	if !slices.Equal(image.Config.Entrypoint, []string{"/worker"}) {
		t.Errorf("the entrypoint is %q: want /worker", image.Config.Entrypoint)
	}
	// FROM scratch: a layer for each of the two COPYs, and none below.
	if n := len(image.RootFS.Layers); n != 2 {
		t.Errorf("the image has %d layers: want 2", n)
	}
	for label, want := range map[string]string{"version": "test", "revision": "0123abc"} {
		if got := image.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("the label %s is %q: want that of the build argument, %s", label, got, want)
		}
	}
	if image.Size > maxImage {
		t.Errorf("the image has %d bytes: want at most %d", image.Size, maxImage)
	}
	for _, variable := range image.Config.Env {
		if name, _, _ := strings.Cut(variable, "="); name != "PATH" && name != "PORT" {
			t.Errorf("the image sets %s: want PORT and nothing else", name)
		}
	}
}

// imageFiles returns the image's files by their paths. What the engine puts into
// every container is not among them, because it is empty.
func imageFiles(ctx context.Context, t *testing.T, app string) map[string][]byte {
	t.Helper()
	id := docker("create", app).must(ctx, t)
	atEnd(t, docker("rm", "--force", id))
	archive := filepath.Join(t.TempDir(), "image.tar")
	docker("export", "--output", archive, id).must(ctx, t)
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || header.Size == 0 {
			continue
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func testFiles(t *testing.T, files map[string][]byte) {
	for name, content := range files {
		switch name {
		case binary:
			testStatic(t, name, content)
		case certificates:
			if !x509.NewCertPool().AppendCertsFromPEM(content) {
				t.Errorf("%s holds no certificate", name)
			}
		default:
			t.Errorf("the image holds %s, which nothing in it needs", name)
		}
	}
	for _, name := range []string{binary, certificates} {
		if files[name] == nil {
			t.Errorf("the image has no %s", name)
		}
	}
}

// testStatic fails for a program that needs a dynamic linker: the image has none.
func testStatic(t *testing.T, name string, content []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Errorf("%s is linked dynamically", name)
		}
	}
}
