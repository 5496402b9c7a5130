package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// placeholder is the path that pages write as long as nobody has chosen one.
const placeholder = "github.com/you/" + "eventsv2"

// rewrite gives the repository in dir the module path to and returns how many files it
// has changed.
func rewrite(dir, to string) (changed int, err error) {
	if err := module.CheckPath(to); err != nil {
		return 0, fmt.Errorf("%q is no module path that others can use: %w", to, err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return 0, fmt.Errorf("run it at the root of the repository: %w", err)
	}
	from := modfile.ModulePath(mod)
	files, err := textFiles(dir)
	if err != nil {
		return 0, err
	}
	r := newRewriter(from, to, files)
	after := map[string][]byte{}
	for path, text := range files {
		written, err := r.file(path, text)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if !bytes.Equal(written, text) {
			after[path] = written
		}
	}
	for path, text := range after {
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil { // a file that is there keeps its mode
			return 0, err
		}
	}
	return len(after), nil
}

// textFiles reads the files of a repository that are text, by their slashed paths.
func textFiles(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == ".git" || name == "bin") {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && !bytes.ContainsRune(text, 0) {
			files[filepath.ToSlash(name)] = text
		}
		return err
	})
	return files, err
}

// rewriter replaces one module path.
type rewriter struct {
	from, to string
	// places are the directories of the repository that hold packages.
	places []string
}

func newRewriter(from, to string, files map[string][]byte) *rewriter {
	places := map[string]bool{}
	for path := range files {
		if first, _, below := strings.Cut(path, "/"); below && strings.HasSuffix(path, ".go") {
			places[first] = true
		}
	}
	return &rewriter{from, to, slices.Collect(maps.Keys(places))}
}

// text replaces what names the module or a package of it. A path without a dot is a word
// like any other: it names a package only where a directory of the repository follows. A
// path with one means the module wherever it stands.
func (r *rewriter) text(text []byte) []byte {
	named := r.namesPackage
	if first, _, _ := strings.Cut(r.from, "/"); strings.Contains(first, ".") {
		named = ends
	}
	return replace(replace(text, placeholder, r.to, ends), r.from, r.to, named)
}

func (r *rewriter) namesPackage(rest []byte) bool {
	return slices.ContainsFunc(r.places, func(place string) bool {
		after, found := bytes.CutPrefix(rest, []byte("/"+place))
		return found && ends(after)
	})
}

var pathChar = regexp.MustCompile(`^[\w-]|^\.\w`)

// ends reports whether a path ends, or goes on below, before the rest of a text.
func ends(rest []byte) bool { return !pathChar.Match(rest) }

// replace replaces a path where it is not the end of a longer one and named accepts what
// stands behind it.
func replace(text []byte, from, to string, named func(rest []byte) bool) []byte {
	if from == to {
		return text
	}
	var out []byte
	last := byte('\n')
	for {
		before, rest, found := bytes.Cut(text, []byte(from))
		out = append(out, before...)
		if !found {
			return out
		}
		if len(before) > 0 {
			last = before[len(before)-1]
		}
		if !strings.ContainsRune("./-_", rune(last)) && !unicode.IsLetter(rune(last)) && !unicode.IsDigit(rune(last)) && named(rest) {
			out = append(out, to...)
		} else {
			out = append(out, from...)
		}
		text, last = rest, from[len(from)-1]
	}
}

func (r *rewriter) file(path string, text []byte) ([]byte, error) {
	if filepath.Base(path) == "go.mod" {
		return r.mod(path, text)
	}
	written := r.text(text)
	if path == ".golangci.yml" {
		written = bytes.ReplaceAll(written, []byte("local-prefixes: ["+r.from+"]"), []byte("local-prefixes: ["+r.to+"]"))
	}
	if strings.HasSuffix(path, ".go") && !bytes.Equal(written, text) {
		return format.Source(written)
	}
	return written, nil
}

// moved is the new path of a module of the repository.
func (r *rewriter) moved(path string) (string, bool) {
	if path == r.from {
		return r.to, true
	}
	below, ours := strings.CutPrefix(path, r.from+"/")
	return r.to + "/" + below, ours
}

// mod rewrites a go.mod: whose it is, and what it requires and replaces.
func (r *rewriter) mod(path string, text []byte) ([]byte, error) {
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		return nil, err
	}
	if file.Module == nil {
		return nil, errors.New("it names no module")
	}
	if to, ours := r.moved(file.Module.Mod.Path); ours {
		if err := file.AddModuleStmt(to); err != nil {
			return nil, err
		}
	}
	for _, require := range slices.Clone(file.Require) {
		if to, ours := r.moved(require.Mod.Path); ours {
			if err := errors.Join(file.DropRequire(require.Mod.Path), file.AddRequire(to, replacedVersion(to))); err != nil {
				return nil, err
			}
		}
	}
	for _, replace := range slices.Clone(file.Replace) {
		if to, ours := r.moved(replace.Old.Path); ours {
			old, by := replace.Old, replace.New
			if err := errors.Join(file.DropReplace(old.Path, old.Version), file.AddReplace(to, old.Version, by.Path, by.Version)); err != nil {
				return nil, err
			}
		}
	}
	file.Cleanup()
	file.SortBlocks()
	return file.Format()
}

// replacedVersion is a version that a path may have, for a module that is replaced by a
// directory anyway.
func replacedVersion(path string) string {
	if _, major, ok := module.SplitPathVersion(path); ok && major != "" {
		return strings.TrimLeft(major, "/.") + ".0.0"
	}
	return "v0.0.0"
}
