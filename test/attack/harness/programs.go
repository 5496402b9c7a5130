package harness

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"eventsv2/internal/setup"
)

// ownModule is where the packages are that belong to the attacking programs.
const ownModule = "eventsv2/test/attack"

// Build compiles packages, given by the names of their binaries, into a
// directory: those of the queue in their module, as they are deployed, and those
// of this one in this. It must run in this module, with go on PATH.
func Build(ctx context.Context, dir string, packages map[string]string) error {
	queue, err := moduleDir(ctx, strings.TrimSuffix(ownModule, "/test/attack"))
	if err != nil {
		return err
	}
	own, err := moduleDir(ctx, ownModule)
	if err != nil {
		return err
	}
	for name, pkg := range packages {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), pkg)
		cmd.Dir, cmd.WaitDelay = queue, 5*time.Second
		if strings.HasPrefix(pkg, ownModule+"/") {
			cmd.Dir = own
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("find the module %s (run this in test/attack of the repository, with go on PATH): %w", module, err)
	}
	return dir, nil
}

// CleanEnvironment is the environment of this process without what configures
// the programs.
func CleanEnvironment() []string {
	ours := make(map[string]bool)
	for field := range reflect.TypeFor[setup.Config]().Fields() {
		ours[field.Tag.Get("env")] = true
	}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return ours[name]
	})
}

// Through is a database URL that goes through a proxy and shows a name.
func Through(databaseURL string, p *Proxy, name string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("the database URL of our own Postgres: %w", err)
	}
	u.Host = p.Address()
	query := u.Query()
	query.Set("application_name", name)
	u.RawQuery = query.Encode()
	return u.String(), nil
}
