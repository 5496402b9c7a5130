package service_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/service"
)

// TestRunnableIsCountedOncePerSecond, however often it is asked for; while the database does not answer, nobody gets
// a number by which to stop workers, and the log has one line.
func TestRunnableIsCountedOncePerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts, down := 0, false
		core, logs := observer.New(zap.WarnLevel)
		handler := service.RunnableHandler(func(ctx context.Context, most int) (int, error) {
			if counts++; down {
				<-ctx.Done()
				return 0, errors.New("no answer")
			}
			return min(counts, most), nil
		}, zap.New(core))
		wants := func(status int, text string) {
			t.Helper()
			if got, said := page(t, handler, "/runnable"); got != status || said != text {
				t.Errorf("%d %q, want %d %q", got, said, status, text)
			}
		}
		for want := range 3 {
			for range 10 {
				wants(http.StatusOK, map[int]string{0: "{\"runnable\":1}\n", 1: "{\"runnable\":2}\n", 2: "{\"runnable\":3}\n"}[want])
			}
			<-time.After(time.Second)
		}
		down = true
		for range 3 {
			wants(http.StatusServiceUnavailable, "cannot count runnable events: see the log\n")
			<-time.After(time.Second)
		}
		down = false
		wants(http.StatusOK, "{\"runnable\":7}\n")
		if n := logs.Len(); n != 1 {
			t.Errorf("the log has %d lines, want one", n)
		}
	})
}
