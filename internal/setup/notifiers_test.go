package setup_test

import (
	"testing"

	"eventsv2/internal/setup"
	_ "eventsv2/service" // registers the notifiers, which the page of the configuration lists
)

func TestNotifierNamesAreParsed(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "b or a": {"a", "b"}, "c, b or a": {"b", "c", "a"}} {
		if got := setup.NotifierNames(names); got != want {
			t.Errorf("NotifierNames(%q) = %q, want %q", names, got, want)
		}
	}
}
