package service

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue/worker"
)

// TestReadinessNamesTheFallbackOnlyIfItRuns (I19): that events are found in the database only if they are.
func TestReadinessNamesTheFallbackOnlyIfItRuns(t *testing.T) {
	t.Parallel()
	const unusable = "Pub/Sub cannot be used, and events are found in the database"
	other := errors.New("permission denied")
	untaken := &worker.UntakenError{Kind: "acknowledged", Err: other}
	for name, c := range map[string]struct {
		peers  error
		failed []error
		want   string
	}{
		"only acknowledgements fail":      {nil, []error{nil, untaken, nil}, "notifications of Pub/Sub cannot be acknowledged, and come again"},
		"publishing fails":                {nil, []error{other, nil}, unusable},
		"publishing fails as well, later": {nil, []error{untaken, other}, unusable},
		"publishing fails as well, first": {nil, []error{other, untaken}, unusable},
		"it does not answer either":       {&notifierError{other}, []error{nil, untaken}, unusable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Service{config: Config{Notifier: PubSub}}
			for _, err := range c.failed {
				s.readyNeeds(func() error { return err })
			}
			core, logs := observer.New(zap.WarnLevel)
			asked := &answers{ready: func(context.Context) error { return s.readyBeside(c.peers) }}
			answer := httptest.NewRecorder()
			healthHandler(checks{ready: asked.ask}, nil, zap.New(core)).
				ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
			if text := answer.Body.String(); answer.Code != http.StatusOK || !strings.HasPrefix(text, "ready, but "+c.want+": ") {
				t.Errorf("/readyz answers %d %s", answer.Code, text)
			}
			if logs.FilterMessage("ready, but "+c.want).Len() != 1 {
				t.Errorf("the log says %v", logs.All())
			}
		})
	}
}
