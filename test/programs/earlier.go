package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoHistory is returned by BuildAt in a clone that lacks the commit.
var ErrNoHistory = errors.New("this clone does not have the commit")

// Dir returns the directory of the repository.
func Dir(ctx context.Context) (string, error) { return moduleDir(ctx, queueModule) }

// BuildAt is Build of the repository as it was at a commit. Packages are given by their directories in it.
// It needs git and tar, and returns ErrNoHistory where the commit cannot be read, as in a shallow clone.
func BuildAt(ctx context.Context, commit, dir string, packages map[string]string) (err error) {
	root, err := Dir(ctx)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("%w %s: %s", ErrNoHistory, commit, strings.TrimSpace(string(out))), ctx.Err())
	}
	source, err := os.MkdirTemp("", "eventsv2-earlier-")
	if err != nil {
		return fmt.Errorf("make a directory for the source of %s: %w", commit, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(source)) }()
	archive := filepath.Join(source, "source.tar")
	for _, words := range [][]string{
		{"git", "-C", root, "archive", "--format=tar", "--output=" + archive, commit},
		{"tar", "-xf", archive, "-C", source},
	} {
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("read the source of %s with %s: %w\n%s", commit, words[0], err, strings.TrimSpace(string(out)))
		}
	}
	for name, pkg := range packages {
		in, relative := source, pkg
		if rest, of := strings.CutPrefix(pkg, attackDir); of {
			in, relative = filepath.Join(source, attackDir), rest
		}
		if err := build(ctx, in, "./"+relative, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// attackDir is where the module of the attacking programs is.
const attackDir = "test/attack/"
