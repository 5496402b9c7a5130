package testenv

import (
	"errors"
	"testing"

	"eventsv2/test/services"
)

// EmulatorHost returns the host:port of the official Pub/Sub emulator, which the
// tests of all packages may share: use names of projects, topics and
// subscriptions that no other test has. Without an emulator it calls
// Missing; one that is there and does not work fails the test. It
// blocks until the emulator answers and is safe for concurrent use.
func EmulatorHost(t testing.TB) string {
	t.Helper()
	service, err := process.emulator.get()
	if errors.Is(err, services.ErrNotFound) {
		Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatalf("this test needs the Pub/Sub emulator: %v", err)
	}
	return service.URL
}
