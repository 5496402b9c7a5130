package pubsubnotify

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/test/pubsubproxy"
)

// TestHangingServerDiffersFromAnIdleOne (I19): a service may let a pull wait for
// longer than anybody waits for it, and answers one that need not wait.
func TestHangingServerDiffersFromAnIdleOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pulls  pubsubproxy.Behaviour
		silent bool
	}{
		"it has nothing": {pubsubproxy.First(1, pubsubproxy.Hang), false},
		"it hangs":       {pubsubproxy.Hang, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := fakeConfig(fakeServer(t))
			proxied, err := pubsubproxy.Open(testContext(t), config.EmulatorHost)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := proxied.Close(); err != nil {
					t.Error(err)
				}
			})
			config.EmulatorHost = proxied.Address()
			n := open(t, config)
			proxied.Set("Pull", c.pulls)
			got, err := n.Pull(testContext(t), 1)
			var silence interface{ Timeout() bool }
			if silent := errors.As(err, &silence) && silence.Timeout(); len(got) != 0 || silent != c.silent || !silent && err != nil {
				t.Errorf("Pull = %v, %v; want silence: %v", got, err, c.silent)
			}
			if calls := proxied.Calls("Pull"); calls != 2 {
				t.Errorf("%d requests were made, want one that waits and one that does not", calls)
			}
			if err := n.Check(testContext(t)); err != nil {
				t.Errorf("Check = %v, though only pulls are not answered", err)
			}
		})
	}
}

// TestCallOnAReplacedConnectionIsUnanswered: that the connection was closed under it is not why it
// failed.
func TestCallOnAReplacedConnectionIsUnanswered(t *testing.T) {
	t.Parallel()
	n := open(t, fakeConfig(fakeServer(t)))
	old := n.connection.clients()
	n.connection.mu.Lock()
	n.connection.dialed = n.connection.dialed.Add(-redialGap)
	n.connection.mu.Unlock()
	n.connection.redial(old)
	closing := status.Error(codes.Canceled, "grpc: the client connection is closing")
	err := n.failed(testContext(t), old, "pull", roleSubscriber, closing)
	var silence interface{ Timeout() bool }
	if !errors.As(err, &silence) || !silence.Timeout() || !strings.Contains(err.Error(), "does not answer; check that it runs") || strings.Contains(err.Error(), "is closing") {
		t.Errorf("the error on a connection that was replaced is %v", err)
	}
	if err := n.failed(testContext(t), n.connection.clients(), "pull", roleSubscriber, closing); !strings.Contains(err.Error(), "is closing") {
		t.Errorf("the error on the connection in use is %v", err)
	}
}
