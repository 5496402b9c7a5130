package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// fullLog is a log that takes no line until it is let.
type fullLog chan struct{}

func (l fullLog) Write(line []byte) (int, error) {
	<-l
	return len(line), nil
}

// TestStallIsReportedBeforeItIsLogged: what a loop waits for may be the log, as when nobody reads the
// program's standard error any more.
func TestStallIsReportedBeforeItIsLogged(t *testing.T) {
	t.Parallel()
	full := make(fullLog)
	read := sync.OnceFunc(func() { close(full) })
	defer read()
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(full), zap.InfoLevel))
	handler := healthHandler(checks{
		alive: func() error { return errors.New("the relay has not gone round for an hour") },
		ready: func(context.Context) (time.Duration, error) { return 0, nil },
	}, nil, log)
	server := httptest.NewServer(handler)
	defer server.Close()
	defer read() // before the server waits for its requests
	for range 2 {
		response, err := server.Client().Get(server.URL + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body) // to its end
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusServiceUnavailable || string(body) != "the relay has not gone round for an hour\n" {
			t.Errorf("/healthz answers %d %q", response.StatusCode, body)
		}
		_ = response.Body.Close()
	}
}
