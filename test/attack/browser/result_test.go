package browser_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var picturesDir = flag.String("pictures", "", "`directory` for the pictures of all pages (default: a temporary one)")

// results counts what was tested. It is safe for concurrent use.
type results struct {
	mu                          sync.Mutex
	scenarios, pictures, failed int
	dir                         string
}

var result results

// scenario counts a test that is under way.
func (r *results) scenario(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.scenarios++
		if t.Failed() {
			r.failed++
		}
	})
}

// picture writes a picture.
func (r *results) picture(t *testing.T, name string, png []byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.makeDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Errorf("write the picture %s: %v", name, err)
		return
	}
	r.pictures++
}

func (r *results) makeDir() (err error) {
	if r.dir != "" {
		return nil
	}
	if *picturesDir == "" {
		r.dir, err = os.MkdirTemp("", "eventsv2-pictures-")
		return err
	}
	r.dir = *picturesDir
	return os.MkdirAll(r.dir, 0o755)
}

func (r *results) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shared.missing {
		fmt.Println("browser: SKIPPED, NOT TESTED: there is no chromium on this machine: apt-get install chromium")
	}
	if r.dir != "" {
		fmt.Println("browser: the pictures are in", r.dir)
	}
	fmt.Printf("browser: scenarios=%d pictures=%d failed=%d\n", r.scenarios, r.pictures, r.failed)
}
