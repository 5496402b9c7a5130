package browser_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"eventsv2/internal/backoff"
	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

// startLimit and stopLimit bound the start and the end of the browser.
const (
	startLimit = 2 * time.Minute
	stopLimit  = 10 * time.Second
)

// chromium is the one process of the browser, which the first scenario starts.
type chromium struct {
	once    sync.Once
	missing bool
	err     error
	dir     string
	process *programs.Process
	ctx     context.Context // chromedp has its connection in it
	close   func()
}

var shared chromium

// executable returns the path of the browser; empty: there is none.
func executable() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// connection returns a connection to the browser, or skips the test where there is none.
func (c *chromium) connection(t *testing.T) context.Context {
	t.Helper()
	c.once.Do(func() {
		path := executable()
		if c.missing = path == ""; !c.missing {
			c.err = c.start(path)
		}
	})
	switch {
	case c.missing:
		testenv.Missing(t, "there is no chromium on this machine: apt-get install chromium")
	case c.err != nil:
		t.Fatal(c.err)
	}
	return c.ctx
}

var listening = regexp.MustCompile(`DevTools listening on (ws://\S+)`)

// dirs are the names of the directories of browsers, before the number of the process of the test.
const dirs = "eventsv2-browser-"

// removeLeftOver removes the directories of browsers whose tests were killed: nobody else does.
func removeLeftOver() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), dirs+"*")) // the pattern is none that is wrong
	for _, dir := range old {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirs), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue // it runs
		}
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, "browser:", err)
		}
	}
}

func (c *chromium) start(path string) (err error) {
	removeLeftOver()
	if c.dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-", dirs, os.Getpid())); err != nil {
		return err
	}
	// What is tested comes from this machine alone. Without its sandbox the browser also runs in
	// containers that do not let it make one.
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
		"--disable-renderer-backgrounding", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-US",
		"--remote-debugging-port=0", "--user-data-dir=" + filepath.Join(c.dir, "profile"), "about:blank"}
	if os.Geteuid() == 0 {
		if path, args, err = asAnother(c.dir, path, args); err != nil {
			return err
		}
	}
	log := filepath.Join(c.dir, "chromium.log")
	if c.process, err = programs.Start(programs.Program{Name: "chromium", Path: path, Args: args, Log: log,
		Env: programs.Environment(map[string]string{"HOME": c.dir, "TMPDIR": c.dir, "XDG_RUNTIME_DIR": c.dir, "TZ": "UTC", "LANG": "C.UTF-8"})}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := c.process.Await(ctx, "DevTools listening on "); err != nil {
		return err
	}
	at := listening.FindStringSubmatch(c.process.LogText())
	if at == nil {
		return fmt.Errorf("chromium does not say where it listens:\n%s", c.process.LastWords())
	}
	allocator, closeAllocator := remote.NewAllocator(context.Background(), at[1], remote.NoModifyURL)
	connected, closeConnection := chromedp.NewContext(allocator)
	c.ctx, c.close = connected, func() { closeConnection(); closeAllocator() }
	return chromedp.Do(connected)
}

// asAnother has a user who is not root run a program, with a directory of its own.
func asAnother(dir, path string, args []string) (string, []string, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		gid, wrong := strconv.Atoi(u.Gid)
		if err := errors.Join(err, wrong, os.Chown(dir, uid, gid)); err != nil {
			return "", nil, err
		}
		setpriv, err := exec.LookPath("setpriv")
		return setpriv, append([]string{"--reuid=" + u.Uid, "--regid=" + u.Gid, "--clear-groups", "--", path}, args...), err
	}
	return "", nil, errors.New("there is neither a user postgres nor a user nobody as whom the browser could run: add one")
}

// stop ends the browser, if it was started, and removes what it has written.
func (c *chromium) stop() error {
	if c.close != nil {
		c.close()
	}
	if c.process != nil {
		c.process.Terminate(stopLimit)
	}
	if c.dir == "" {
		return nil
	}
	// Some of the browser's own processes outlive it for a moment, and write.
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	for {
		err := os.RemoveAll(c.dir)
		if err == nil {
			return nil
		}
		if backoff.Sleep(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return err
		}
	}
}

func TestMain(m *testing.M) {
	testenv.Main(m, func() {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "browser:", err)
		}
		result.print()
	})
}
