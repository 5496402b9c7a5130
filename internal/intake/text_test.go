package intake_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eventsv2/internal/intake"
)

// TestUnusableURLsAreRefused: text that Postgres cannot hold, and queries that cannot be read or are too long.
func TestUnusableURLsAreRefused(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/a?b=c%20%C3%A9&d=&e":               "",
		"/a%00":                              "path: it has the character NUL",
		"/a%ff":                              "path: it is not UTF-8",
		"/?name=a%00":                        "query: name: it has the character NUL",
		"/?ok=1&name=%ff":                    "query: name: it is not UTF-8",
		"/?%00=1":                            "query: the name of a parameter: it has the character NUL",
		"/?a=%zz":                            "query: it is not encoded",
		"/?a=1;b=2":                          "query: it is not encoded",
		"/?a=" + strings.Repeat("a", 65<<10): "query: at most 200 parameters",
		"/?" + strings.Repeat("a=1&", 200) + "a=1": "query: at most 200 parameters",
		"/?" + strings.Repeat("a=1&", 199) + "a=1": "",
	} {
		err := intake.CheckURL(httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%.80s: %q, want %q", target, got, want)
		}
	}
}
