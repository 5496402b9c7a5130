package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const stopLimit = 30 * time.Second

// Main runs the tests of a package, then the functions after, stops the services
// that the tests started, looks for goroutines that they left behind, and exits:
// with status 1 if anything of this failed. It does not return, so it is the
// last line of TestMain, and mostly the only one.
func Main(m *testing.M, after ...func()) {
	status := m.Run()
	for _, f := range after {
		f()
	}
	for _, err := range []error{stopProcess(), goleak.Find(ignored()...)} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "testenv:", err)
			status = max(status, 1)
		}
	}
	os.Exit(status)
}

func stopProcess() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return process.stop(ctx)
}

// ignored are goroutines that libraries start once per process and cannot end.
func ignored() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"),
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"),
	}
}
