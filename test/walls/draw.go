package walls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// Module returns the path of the module in dir, with which the imports of its own packages
// begin.
func Module(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m in %s: %w", dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Imports returns the packages of the module in dir that are no tests, by their
// directories, each with those of the module that it imports.
func Imports(ctx context.Context, dir string) (map[string][]string, error) {
	module, err := Module(ctx, dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	imports := map[string][]string{}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			return imports, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		at, own := strings.CutPrefix(p.ImportPath, module+"/")
		if !own || at == "test" || strings.HasPrefix(at, "test/") {
			continue
		}
		imports[at] = nil
		for _, i := range p.Imports {
			if to, own := strings.CutPrefix(i, module+"/"); own {
				imports[at] = append(imports[at], to)
			}
		}
	}
}

// Draw returns the imports as a Mermaid flowchart. An arrow that a longer way says
// already is left out, and so are arrows to internal helpers, which import nothing of ours.
func Draw(imports map[string][]string) string {
	helper := func(at string) bool { return strings.HasPrefix(at, "internal/") && len(imports[at]) == 0 }
	var b strings.Builder
	b.WriteString("flowchart BT\n")
	for _, at := range slices.Sorted(maps.Keys(imports)) {
		if helper(at) {
			continue
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", node(at), at)
		for _, to := range slices.Sorted(slices.Values(imports[at])) {
			if !helper(to) && !longer(imports, at, to) {
				fmt.Fprintf(&b, "  %s --> %s\n", node(at), node(to))
			}
		}
	}
	return b.String()
}

func node(at string) string { return strings.NewReplacer("/", "_", "-", "_").Replace(at) }

// longer reports whether one of the other packages that at imports leads to to.
func longer(imports map[string][]string, at, to string) bool {
	seen := map[string]bool{}
	var leads func(string) bool
	leads = func(from string) bool {
		if seen[from] {
			return false
		}
		seen[from] = true
		return slices.ContainsFunc(imports[from], func(next string) bool { return next == to || leads(next) })
	}
	return slices.ContainsFunc(imports[at], func(other string) bool { return other != to && leads(other) })
}
