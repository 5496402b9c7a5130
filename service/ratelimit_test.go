package service_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/service"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
)

// TestWebhooksOverALimitAreAcceptedAndWait, from the request to the run, on a real database: what is over the limit is
// accepted, and runs once there is room. A source with over_limit: refuse answers it with 429, and another canvas notices nothing.
func TestWebhooksOverALimitAreAcceptedAndWait(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	store := pgstore.New(testenv.Pool(t))
	notifier := memnotify.New(memnotify.Config{})
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	file := handlersFile(t, "  - {source: own, scheme: github, secrets: [A], module: M, modifier: _, name: n}\n"+
		"  - {source: strict, over_limit: refuse, scheme: github, secrets: [A], module: M, modifier: _, name: n}\n")
	sources, err := service.SourcesOf(file, secretsIn(map[string]string{"A": "hush"}))
	if err != nil {
		t.Fatal(err)
	}
	handler, err := service.NewWebhooks(queue, store, webhook.Config{Sources: sources, MaxBodyBytes: 1000, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := operate.NewRateLimits(store, queue)
	if err != nil {
		t.Fatal(err)
	}
	limited, free := eventqueue.CanvasID{1}, eventqueue.CanvasID{2}
	if _, err := limits.Set(ctx, operate.RateLimit{Scope: eventqueue.Scope{Canvas: limited}, PerDay: 2}); err != nil {
		t.Fatal(err)
	}
	ran := startWorker(t, queue, store, notifier, file)

	for _, body := range []string{`1`, `2`} {
		if answer := deliver(handler, limited, "own", body); answer.Code != http.StatusOK {
			t.Errorf("within the limit: %d", answer.Code)
		}
		<-ran
	}
	over := deliver(handler, limited, "strict", `3`)
	seconds, err := strconv.Atoi(over.Header().Get("Retry-After"))
	if over.Code != http.StatusTooManyRequests || err != nil || seconds < 1 || seconds > 24*3600 {
		t.Errorf("over the limit: %d, Retry-After %q", over.Code, over.Header().Get("Retry-After"))
	}
	if answer := deliver(handler, free, "strict", `3`); answer.Code != http.StatusOK {
		t.Errorf("another canvas: %d", answer.Code)
	}
	<-ran
	for _, body := range []string{`4`, `5`} {
		if answer := deliver(handler, limited, "own", body); answer.Code != http.StatusOK {
			t.Errorf("over the limit, of a source whose events wait: %d", answer.Code)
		}
	}
	testenv.Eventually(t, "the events wait for the limit", func() bool {
		limits, err := store.RateLimits(ctx, &limited)
		return err == nil && len(limits) == 1 && limits[0].Waiting == 2
	})
	if _, _, err := limits.Remove(ctx, eventqueue.Scope{Canvas: limited}); err != nil {
		t.Fatal(err)
	}
	if answer := deliver(handler, limited, "strict", `3`); answer.Code != http.StatusOK {
		t.Errorf("without the limit: %d", answer.Code)
	}
	<-ran
}

// startWorker runs the handler of the file. The channel gets a value for every event that
// has completed.
func startWorker(t *testing.T, queue *eventqueue.Queue, store *pgstore.Store, notifier *memnotify.Notifier, file *httptarget.File) <-chan struct{} {
	t.Helper()
	handlers := eventqueue.NewHandlers()
	done := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
	if err := handlers.Register(file.Entries[0].Key, done, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{}, 10)
	w, err := worker.New(queue, store, notifier, handlers, worker.Config{Observe: func(out worker.Outcome) {
		if out.Label == machine.ExecutesToCompletion {
			ran <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return ran
}

func deliver(handler http.Handler, canvas eventqueue.CanvasID, source, body string) *httptest.ResponseRecorder {
	mac := hmac.New(sha256.New, []byte("hush"))
	_, _ = mac.Write([]byte(body))
	request := httptest.NewRequest(http.MethodPost, "/webhooks/"+canvas.String()+"/"+source, strings.NewReader(body))
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	request.Header.Set("X-GitHub-Delivery", "delivery of "+body)
	request.Header.Set("X-GitHub-Event", "push")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}
