package command

import (
	"fmt"
	"strings"
	"testing"
)

func TestFindingsAreBoundedAndInOrder(t *testing.T) {
	t.Parallel()
	var f Findings
	var out strings.Builder
	f.Print(&out)
	if out.Len() > 0 {
		t.Errorf("without findings %q is printed", out.String())
	}
	f.Add("first: %s", "one line")
	var long strings.Builder
	for i := range 40 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	f.Add("%s", long.String())
	f.Add("%s", strings.Repeat("ä", 2000))
	f.Print(&out)
	text := out.String()
	for _, want := range []string{"first: one line\nline 0\n    line 1\n", "    line 29\n    and 10 lines more\n", "ä ...\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "line 30") || len(text) > 2000 || strings.Contains(text, "\uFFFD") {
		t.Errorf("a finding is printed beyond its bounds, or broken:\n%s", text)
	}
}
