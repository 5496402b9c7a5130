package service_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"eventsv2/service"
)

// TestCloudSQLWithoutDialerIsRefused: a program that embeds the queue has no connector, unless it brings one.
func TestCloudSQLWithoutDialerIsRefused(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"DATABASE_URL": "postgres://me@/events", "NOTIFIER": "postgres", "CLOUDSQL_INSTANCE": "p:r:i"}
	config, err := service.FromEnvironment(environment)
	if err != nil {
		t.Fatal(err)
	}
	if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "Access.Dial is not: a program of your own gives it the Dial of a cloudsqlconn.Dialer") {
		t.Errorf("without a dialer: %v", err)
	}
	config.Access.Dial = func(context.Context) (net.Conn, error) { return nil, nil }
	if err := config.Validate(); err != nil {
		t.Errorf("with a dialer: %v", err)
	}
	for variable, value := range map[string]string{"CLOUDSQL_INSTANCE": "my-database", "CLOUDSQL_IP_TYPE": "secret"} {
		wrong := map[string]string{"DATABASE_URL": "postgres://me@/events", variable: value}
		if _, err := service.FromEnvironment(wrong); err == nil || !strings.Contains(err.Error(), variable+" is ") {
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
}
