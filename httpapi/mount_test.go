package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestHandlerCanBeMountedInAProgram asks the API and the dashboard of a program that embeds the queue, as docs/embedding.md has it.
func TestHandlerCanBeMountedInAProgram(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	s, err := service.Open(ctx, service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: testenv.Logger(t), NoWorker: true, NoRelay: true, NoCron: true, NoPruner: true})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := mount(s, mux); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	for path, want := range map[string]int{"/v1/workers": http.StatusUnauthorized, "/v1/openapi.json": http.StatusOK,
		"/admin/events/login": http.StatusOK, "/admin/events/": http.StatusSeeOther, "/login": http.StatusNotFound} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, strings.NewReader("")))
		if answer.Code != want {
			t.Errorf("GET %s answers %d, want %d", path, answer.Code, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
