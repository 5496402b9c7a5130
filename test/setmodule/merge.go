package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// takeVersion merges a commit of the original repository into a repository with a module path of its own. It leaves the
// result in the work tree, for a commit that has both as its parents, and returns what it has done as a sentence.
//
// A plain merge compares the lines with the old path and those with the new one, and nearly every file conflicts. So both
// the commit and the one that was taken last are rewritten first, and what changed between these is applied: it
// conflicts only with changes of one's own to the same lines.
func takeVersion(ctx context.Context, dir, commit string) (said string, err error) {
	g := git(dir)
	if changed, err := g.run(ctx, "status", "--porcelain", "--untracked-files=no"); err != nil {
		return "", err
	} else if changed != "" {
		return "", errors.New("there are changes that are not committed: commit or stash them first")
	}
	theirs, err := g.run(ctx, "rev-parse", "--verify", "--quiet", commit+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%q is no commit here: git fetch it first", commit)
	}
	base, err := g.run(ctx, "merge-base", "HEAD", theirs)
	if err != nil {
		return "", fmt.Errorf("%s and this repository have no commit in common: it is no copy of it", commit)
	}
	if base == theirs {
		return commit + " was taken already", nil
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("run it at the root of the repository: %w", err)
	}
	was, err := g.rewritten(ctx, base, modfile.ModulePath(mod))
	if err != nil {
		return "", err
	}
	is, err := g.rewritten(ctx, theirs, modfile.ModulePath(mod), "-p", was)
	if err != nil {
		return "", err
	}
	_, conflict := g.run(ctx, "cherry-pick", "--no-commit", is)
	unmerged, err := g.run(ctx, "diff", "--name-only", "--diff-filter=U")
	if err == nil && conflict != nil && unmerged == "" {
		err = conflict
	}
	if err != nil {
		return "", err
	}
	// The commit to come has both histories: the next version is compared with this one.
	for name, text := range map[string]string{"MERGE_HEAD": theirs, "MERGE_MSG": "Take " + commit + " of the original"} {
		path, err := g.run(ctx, "rev-parse", "--path-format=absolute", "--git-path", name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			return "", err
		}
	}
	if unmerged != "" {
		return "", fmt.Errorf("changes of yours conflict in\n%s\nresolve them, git add these files, and git commit", unmerged)
	}
	return fmt.Sprintf("%s is merged: build and test it, and git commit", commit), nil
}

// git is a repository, by the directory of its work tree.
type git string

func (g git) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = string(g)
	// The commits that are made here are thrown away. Nobody has written them.
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=setmodule", "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_NAME=setmodule", "GIT_COMMITTER_EMAIL=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stdout.String()+stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// rewritten makes a commit of the files of another one with the module path to. more are arguments for git commit-tree.
func (g git) rewritten(ctx context.Context, commit, to string, more ...string) (made string, err error) {
	parent, err := os.MkdirTemp("", "setmodule-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
	at := git(filepath.Join(parent, "files"))
	if _, err := g.run(ctx, "worktree", "add", "--quiet", "--detach", string(at), commit); err != nil {
		return "", err
	}
	defer func() {
		_, failure := g.run(ctx, "worktree", "remove", "--force", string(at))
		err = errors.Join(err, failure)
	}()
	if _, err := rewrite(string(at), to); err != nil {
		return "", fmt.Errorf("rewrite %s: %w", commit, err)
	}
	if _, err := at.run(ctx, "add", "--all"); err != nil {
		return "", err
	}
	tree, err := at.run(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return g.run(ctx, append([]string{"commit-tree", tree, "-m", "Rewritten"}, more...)...)
}
