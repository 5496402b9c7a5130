package programs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"eventsv2/internal/setup"
)

// Programs are built in their module: those of the queue as they are deployed, and those that
// attack it.
const attackModule = "eventsv2/test/attack"

var queueModule = strings.TrimSuffix(attackModule, "/test/attack")

// The programs that are deployed, by the names of their binaries.
const (
	Worker = "worker"
	Cron   = "cron"
	Ctl    = "eventctl"
)

// Build compiles packages, given by the names of their binaries, into a directory. It must
// run in the repository, with go on PATH; what belongs to the attacking programs only in their
// module.
func Build(ctx context.Context, dir string, packages map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		pkg, module := packages[name], queueModule
		if strings.HasPrefix(pkg, attackModule+"/") {
			module = attackModule
		}
		in, err := moduleDir(ctx, module)
		if err != nil {
			return err
		}
		if err := build(ctx, in, pkg, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// build compiles a package of the module in a directory.
func build(ctx context.Context, in, pkg, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", to, pkg)
	cmd.Dir, cmd.WaitDelay = in, 5*time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Deployed are the packages of some of the deployed programs, for Build.
func Deployed(names ...string) map[string]string {
	packages := map[string]string{}
	for _, name := range names {
		packages[name] = queueModule + "/cmd/" + name
	}
	return packages
}

func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("find the module %s (run this in the repository, with go on PATH): %w", module, err)
	}
	return dir, nil
}

// Environment returns this process' environment without the programs' variables, and with settings,
// of which the later ones count.
func Environment(settings ...map[string]string) []string {
	all := map[string]string{}
	for _, some := range settings {
		maps.Copy(all, some)
	}
	env := clean(os.Environ())
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

func clean(environment []string) []string {
	ours := make(map[string]bool)
	for field := range reflect.TypeFor[setup.Config]().Fields() {
		ours[field.Tag.Get("env")] = true
	}
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return ours[name]
	})
}
