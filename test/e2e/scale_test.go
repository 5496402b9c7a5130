package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// runnable asks cron what could run now.
func runnable(t *testing.T, address string) (n int) {
	t.Helper()
	request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, "http://"+address+"/runnable", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var said struct {
		Runnable int `json:"runnable"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", answer.Status, err)
	}
	return said.Runnable
}

// TestWorkersScaleFromZeroAndBack by what cron answers, as an autoscaler has them do: no worker while all is paused,
// the most once it is not, none when all is done. Nothing is lost or run twice, however often workers start and stop.
func TestWorkersScaleFromZeroAndBack(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	const events, perWorker, most = 400, 20, 8
	r := newPostgresRig(t, "greet")
	cron := r.start("cron", nil)
	cron.await("health endpoints listen")
	address := regexp.MustCompile(`"address":"([^"]+)"`).FindStringSubmatch(cron.text())[1]
	r.eventctl(append([]string{"pause"}, onHandler("greet")...)...)
	batch := make([]eventqueue.NewEvent, events)
	for i := range batch {
		batch[i] = event("greet", fmt.Sprint(i))
	}
	r.emit(batch...)
	if n := runnable(t, address); n != 0 {
		t.Errorf("%d could run while all are paused", n)
	}
	r.eventctl(append([]string{"unpause"}, onHandler("greet")...)...)
	// As long as no handler returns, what waits does not become less.
	all := make(chan struct{})
	r.target.holdUntil(all)
	var running []*program
	peak := 0
	testenv.Eventually(t, "the workers to be scaled up, and down to none", func() bool {
		n := runnable(t, address)
		want := min((n+perWorker-1)/perWorker, most)
		for len(running) < want {
			running = append(running, r.start("worker", map[string]string{"WORKER_CONCURRENCY": "2"}))
		}
		if len(running) == most && peak < most {
			peak = most
			close(all)
		}
		for len(running) > want {
			last := running[len(running)-1]
			if status := last.terminate(); status != 0 {
				t.Errorf("a worker that was scaled down ended with status %d:\n%s", status, last.text())
			}
			running = running[:len(running)-1]
		}
		return peak == most && n == 0 && len(running) == 0
	})
	r.awaitSQL("all events to be completed", `SELECT NOT EXISTS (TABLE events_v2)`)
	seen := map[string]int{}
	for _, got := range r.target.await(t, events) {
		seen[got.body]++
	}
	for i := range batch {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Errorf("event %d ran %d times", i, n)
		}
	}
}
