package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/service"
)

// TestSubscriptionsOfOtherServicesAreChecked by their lines, without Pub/Sub.
func TestSubscriptionsOfOtherServicesAreChecked(t *testing.T) {
	t.Parallel()
	const entry = "  - {subscription: %, canvas: 0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11, module: M, name: n, modifier: _}\n"
	for name, want := range map[string]string{"projects/shop/subscriptions/orders-to-events": "", "orders": `:3: subscription "orders": give its whole name`} {
		file := filepath.Join(t.TempDir(), "handlers.yaml")
		text := "handlers: [{module: M, name: n, modifier: _, url: http://a}]\nsubscriptions:\n" + strings.Replace(entry, "%", name, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := service.CheckHandlersFile(file); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
