package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Compiling and linking costs as much as judging. So all mutants are in the same programs: each changed function has
// the mutant's body beside its own, and so has the value of a variable or constant; a variable of the environment
// selects one. A mutant can change nothing else, such as a type.

// selector is the variable of the environment that names the mutant.
const selector = "EVENTSV2_MUTANT"

// The names that are added to each changed package.
const (
	selected = "mutantSelected"
	pick     = "mutantPick"
)

// errUnfit is why a mutant cannot be made.
var errUnfit = errors.New("it does not change the body of one function, or one value: write it so that it does")

// source is a file and what is to be changed in it.
type source struct {
	name     string // from the root of the module
	text     []byte
	file     *ast.File
	variants map[ast.Node][]variant // by function, or by the specification of a variable or constant
}

// variant is a body or a value as a mutant changes it.
type variant struct{ name, text string }

// instrument returns the texts of the files that mutants change, with all of the mutants in them, and of a file for
// each of their packages that selects one. It also returns what is wrong with the mutants that it leaves out.
func instrument(root string, mutants []mutant) (texts map[string]string, unfit, err error) {
	files, err := parseModule(root)
	if err != nil {
		return nil, nil, err
	}
	var migrations []*mutant
	for i := range mutants {
		m := &mutants[i]
		file, from, to := m.inGo()
		if err := m.applies(root); err != nil {
			unfit = errors.Join(unfit, err)
		} else if m.isMigration() {
			migrations = append(migrations, m)
		} else if err := files[file].addVariant(m.name, from, to); err != nil {
			unfit = errors.Join(unfit, fmt.Errorf("the mutant %s of %s: %w", m.name, m.file, err))
		}
	}
	convertConstants(files)
	texts = map[string]string{}
	for _, s := range files {
		of := s.name == embedding && len(migrations) > 0
		if len(s.variants) > 0 || of {
			texts[s.name] = s.instrumented()
			if of {
				texts[s.name] = strings.Replace(texts[s.name], embedded, "var embedded_ embed.FS", 1)
				texts["migrations/zz_mutants_sql.go"] = migrationFiles(migrations)
			}
			texts[filepath.Join(filepath.Dir(s.name), "zz_mutants.go")] = "package " + s.file.Name.Name + "\n\nimport \"os\"\n\n" +
				"var " + selected + " = os.Getenv(\"" + selector + "\")\n\n" +
				"func " + pick + "[T any](name string, mutant, original T) T {\n\tif " + selected + " == name {\n\t\treturn mutant\n\t}\n\treturn original\n}\n"
		}
	}
	return texts, unfit, nil
}

// parseModule reads the module without its tests, by the names of files.
func parseModule(root string) (map[string]*source, error) {
	files := map[string]*source{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != root && err == nil || strings.HasPrefix(entry.Name(), ".") && path != root {
				return filepath.SkipDir // another module
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = &source{name: name, text: text, file: file, variants: map[ast.Node][]variant{}}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what mutants change: %w", err)
	}
	return files, nil
}

func (s *source) at(p token.Pos) int { return int(p - s.file.FileStart) }

// of returns the text of a part of the file.
func (s *source) of(n ast.Node) string { return string(s.text[s.at(n.Pos()):s.at(n.End())]) }

// addVariant adds what a mutant makes of the function or value that has a text.
func (s *source) addVariant(name, from, to string) error {
	if s == nil || bytes.Count(s.text, []byte(from)) != 1 {
		return errUnfit
	}
	at := bytes.Index(s.text, []byte(from))
	node, begins, ends := s.around(at, at+len(from))
	if node == nil {
		return errUnfit
	}
	text := strings.Replace(string(s.text[begins:ends]), from, to, 1)
	if v, ok := node.(*ast.ValueSpec); ok {
		before := string(s.text[begins:s.at(v.Values[0].Pos())])
		if text, ok = strings.CutPrefix(text, before); !ok {
			return errUnfit
		}
	}
	s.variants[node] = append(s.variants[node], variant{name, text})
	return nil
}

// around returns the function in whose body a text is, or the specification of a variable or constant that has it, and
// where that body or specification begins and ends.
func (s *source) around(begins, ends int) (node ast.Node, from, to int) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && s.at(f.Body.Lbrace)+1 <= begins && ends <= s.at(f.Body.Rbrace) {
			return f, s.at(f.Body.Lbrace) + 1, s.at(f.Body.Rbrace)
		}
	}
	for v := range s.values {
		if from, to := s.at(v.Pos()), s.at(v.End()); from <= begins && ends <= to {
			return v, from, to
		}
	}
	return nil, 0, 0
}

// values yields the specifications of single variables and constants, with their tokens.
func (s *source) values(yield func(*ast.ValueSpec, token.Token) bool) {
	for _, d := range s.file.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 && !yield(v, general.Tok) {
				return
			}
		}
	}
}

// convertConstants marks the constants that are made of ones which become variables, as they have to become variables
// themselves. Those of other packages are known by the package's name.
func convertConstants(files map[string]*source) {
	variable := map[string]bool{} // by directory or name of the package, a dot, and the name of the constant
	for before := -1; before < len(variable); {
		before = len(variable)
		for _, s := range files {
			dir := filepath.Dir(s.name)
			for v, tok := range s.values {
				if _, marked := s.variants[v]; tok != token.CONST || !marked && !mentions(v.Values[0], dir, variable) {
					continue
				}
				if s.variants[v] == nil {
					s.variants[v] = []variant{}
				}
				name := v.Names[0].Name
				variable[dir+"."+name] = true
				if ast.IsExported(name) {
					variable[s.file.Name.Name+"."+name] = true
				}
			}
		}
	}
}

// mentions reports whether an expression of a package has one of the names.
func mentions(e ast.Expr, dir string, names map[string]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				found = found || names[of.Name+"."+n.Sel.Name]
			}
			return false
		case *ast.Ident:
			found = found || names[dir+"."+n.Name]
		}
		return !found
	})
	return found
}

// replacement is a new text for a part of a file.
type replacement struct {
	from, to int
	text     string
}

// instrumented returns the text of the file with all variants.
func (s *source) instrumented() string {
	var parts []replacement
	end := ""
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && len(s.variants[f]) > 0 {
			at := s.at(f.Body.Lbrace) + 1
			parts = append(parts, replacement{at, at, bodies(f, s.variants[f])})
		}
	}
	for v, tok := range s.values {
		variants, changes := s.variants[v]
		if !changes {
			continue
		}
		value := s.of(v.Values[0])
		for _, of := range variants {
			value = fmt.Sprintf("%s(%q, %s, %s)", pick, of.name, of.text, value)
		}
		if tok == token.VAR {
			parts = append(parts, replacement{s.at(v.Values[0].Pos()), s.at(v.Values[0].End()), value})
			continue
		}
		// A constant becomes a variable, which cannot be declared among constants.
		parts = append(parts, replacement{s.at(v.Pos()), s.at(v.End()), "_ = 0"})
		typed := ""
		if v.Type != nil {
			typed = s.of(v.Type) + " "
		}
		end += "\nvar " + v.Names[0].Name + " " + typed + "= " + value + "\n"
	}
	slices.SortFunc(parts, func(a, b replacement) int { return a.from - b.from })
	var text strings.Builder
	last := 0
	for _, part := range parts {
		text.Write(s.text[last:part.from])
		text.WriteString(part.text)
		last = part.to
	}
	text.Write(s.text[last:])
	text.WriteString(end)
	return text.String()
}

// bodies returns the statements that a function begins with: the bodies of its mutants. The compiler names the mutant
// whose body it refuses as the file.
func bodies(f *ast.FuncDecl, variants []variant) string {
	var text strings.Builder
	for _, v := range variants {
		fmt.Fprintf(&text, "\nif %s == %q {\n//line mutant-%s:1\n%s\n", selected, v.name, v.name, v.text)
		if f.Type.Results == nil {
			text.WriteString("return\n")
		}
		text.WriteString("}\n")
	}
	return text.String()
}
