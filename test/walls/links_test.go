package walls_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestServiceLinksNoServerOfPages lists what a program links that embeds the queue: the HTTP API and the dashboard, and
// the libraries that only these need, are for the programs that serve them.
func TestServiceLinksNoServerOfPages(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./service")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := "\n" + string(out)
	if !strings.Contains(packages, "/eventqueue/worker\n") {
		t.Fatalf("the list has no worker:\n%s", out)
	}
	for _, left := range []string{"/httpapi\n", "/dashboard\n", "/access\n", "danielgtaylor/huma", "go-oidc", "go-jose", "lnquy", "/otelevents\n", "prometheus/client_golang", "autoexport"} {
		if strings.Contains(packages, left) {
			t.Errorf("a program that imports service links %s", strings.TrimSpace(left))
		}
	}
}
