package browser_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var picturesDir = flag.String("pictures", "", "`directory` for the pictures of all pages; none: they are taken and not retained")

// results counts what was tested. It is safe for concurrent use.
type results struct {
	mu                          sync.Mutex
	scenarios, pictures, failed int
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
	if *picturesDir == "" {
		r.pictures++
		return
	}
	err := os.MkdirAll(*picturesDir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(*picturesDir, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Errorf("write the picture %s: %v", name, err)
		return
	}
	r.pictures++
}

func (r *results) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shared.missing {
		fmt.Println("browser: SKIPPED, NOT TESTED: there is no chromium on this machine: apt-get install chromium")
	}
	if *picturesDir != "" && r.pictures > 0 {
		fmt.Println("browser: the pictures are in", *picturesDir)
	}
	fmt.Printf("browser: scenarios=%d pictures=%d failed=%d\n", r.scenarios, r.pictures, r.failed)
}
