package webtarget_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/test/testenv"
	"eventsv2/test/webtarget"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestWorkerReadsTheFile writes a handlers file and reads it as cmd/worker
// does.
func TestWorkerReadsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	keys := []eventqueue.HandlerKey{{Module: "M", Name: "a", Modifier: "_"}, {Module: "M", Name: "b", Modifier: "_"}}
	err := webtarget.WriteHandlersFile(path, "http://127.0.0.1:1/w", []webtarget.Handler{
		{Key: keys[0], Timeout: 3 * time.Second, MaxRetries: 7, BackoffBase: time.Second, BackoffMax: time.Minute},
		{Key: keys[1], BackoffBase: time.Second, BackoffMax: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := httptarget.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Entries) != 2 || file.Entries[0].Key != keys[0] || file.Entries[1].Key != keys[1] {
		t.Fatalf("the worker reads %+v", file.Entries)
	}
	if err := webtarget.WriteHandlersFile(filepath.Join(path, "no"), "http://127.0.0.1:1", nil); err == nil {
		t.Error("a file was written where there is no folder")
	}
}

func TestServerServesUntilStopped(t *testing.T) {
	t.Parallel()
	server, err := webtarget.Start(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "here") // the client tells when it is missing
	}))
	if err != nil {
		t.Fatal(err)
	}
	get := func() (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Close = true
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }() // it was read
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	if text, err := get(); err != nil || text != "here" {
		t.Errorf("the server answers %q, %v", text, err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if text, err := get(); err == nil {
		t.Errorf("a stopped server answers %q", text)
	}
}

// TestRequestsAreParsedOrRefused has what a worker posts read, and refuses what is no event.
func TestRequestsAreParsedOrRefused(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{"17": http.StatusOK, "": http.StatusBadRequest, "x": http.StatusBadRequest} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a/w1", strings.NewReader("{}"))
		request.Header.Set("ce-id", id)
		answer := httptest.NewRecorder()
		got, ok := webtarget.Read(answer, request)
		if answer.Code != want || ok != (want == http.StatusOK) {
			t.Errorf("ce-id %q: %d, %v, want %d", id, answer.Code, ok, want)
		}
		if ok && (got.ID != 17 || got.By != "w1" || string(got.Value) != "{}") {
			t.Errorf("read %+v", got)
		}
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/w1", iotest.ErrReader(io.ErrUnexpectedEOF))
	request.Header.Set("ce-id", "17")
	if _, ok := webtarget.Read(httptest.NewRecorder(), request); ok {
		t.Error("the event of a worker that is gone was read")
	}
}
