package yamlfile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"eventsv2/internal/yamlfile"
)

// reports collects what is reported.
type reports []string

func (r *reports) add(line int, format string, args ...any) {
	*r = append(*r, fmt.Sprintf("%d: ", line)+fmt.Sprintf(format, args...))
}

func (r *reports) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(*r, want) {
		t.Errorf("%s: reported\n%s\nwant\n%s", what, strings.Join(*r, "\n"), strings.Join(want, "\n"))
	}
}

func source(text string) yamlfile.Source {
	return yamlfile.Source{Data: []byte(text), MaxBytes: 100, Empty: "write something", Second: "write one"}
}

func TestDocumentIsOneYAMLText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		root bool
		want []string
	}{
		{"a: 1\n", true, nil},
		{"", false, []string{"1: the file is empty: write something"}},
		{"# nothing\n~\n", false, []string{"1: the file is empty: write something"}},
		{strings.Repeat("x", 101), false, []string{"1: the file is 101 bytes long: the limit is 100"}},
		{"a: 1\nb: \xff\n", false, []string{"2: the file is not UTF-8 here: save it in that encoding"}},
		{"a: 1\n\x01", false, []string{"2: the control character U+0001 is here: remove it"}},
		{"a: 1\n---\nb: 2\n", true, []string{"2: a second document begins here: write one"}},
		{"a: 1\nb: [\n", false, []string{"2: not YAML: did not find expected node content"}},
	} {
		var r reports
		if root := yamlfile.Document(source(c.text), r.add); (root != nil) != c.root {
			t.Errorf("%q: the root is %v", c.text, root)
		}
		r.want(t, c.text, c.want...)
	}
}

func TestMappingReturnsTheFirstOfEachKnownKey(t *testing.T) {
	t.Parallel()
	var r reports
	root := yamlfile.Document(source("a: 1\nb: &x [2]\na: 3\nc: 4\n? [d]\n: 5\ne: *x\n"), r.add)
	fields, ok := yamlfile.Mapping(root, "it", r.add, "a", "b", "e")
	if keys := slices.Sorted(maps.Keys(fields)); !ok || !slices.Equal(keys, []string{"a", "b", "e"}) || fields["a"].Value != "1" {
		t.Errorf("the fields are %v, %v", keys, ok)
	}
	if e := yamlfile.Resolve(fields["e"]); e != fields["b"] || yamlfile.KindOf(e) != "a list" || yamlfile.KindOf(fields["e"]) != "an alias" {
		t.Errorf("the alias leads to %v", e)
	}
	r.want(t, "the mapping", `3: "a" is there twice, first in line 1: remove one of the two`,
		"5: a key of it is a list: the keys are a, b, e", `4: unknown key "c": the keys of it are a, b, e`)

	r = nil
	if _, ok := yamlfile.Entries(yamlfile.Document(source("- a"), r.add), "it", "the keys are yours", r.add); ok {
		t.Error("a list is taken for a mapping")
	}
	r.want(t, "a list", "1: it is a list: write it as keys and values; the keys are yours")
}

func TestMistakesAreBounded(t *testing.T) {
	t.Parallel()
	m := yamlfile.Mistakes{Prefix: "f: "}
	if err := m.Err(); err != nil {
		t.Errorf("without any: %v", err)
	}
	m.Report(7, "%s is wrong: write another", strings.Repeat("ü", 10_000))
	for range 100_000 {
		m.Report(8, "wrong, too")
	}
	text := fmt.Sprint(m.Err())
	if !strings.HasPrefix(text, "f: line 7: ü") || !strings.Contains(text, "ü is wrong: write another\nf: line 8: wrong, too\n") ||
		!strings.HasSuffix(text, "\nf: and 99901 mistakes more: correct these first") || len(text) > 4_000 {
		t.Errorf("the error has %d bytes: %.1000s … %s", len(text), text, text[max(0, len(text)-100):])
	}
}
