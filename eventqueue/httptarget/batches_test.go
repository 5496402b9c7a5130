package httptarget

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

// runsOf are runs of events with these ids.
func runsOf(ids ...eventqueue.EventID) []*eventqueue.Run {
	var runs []*eventqueue.Run
	for _, id := range ids {
		run := testRun()
		run.ID = id
		runs = append(runs, run)
	}
	return runs
}

func TestBatchIsOneRequestOfCloudEvents(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 10)
	target, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		bodies <- fmt.Sprint(r.Method, " ", r.Header.Get("Content-Type"), " ", string(body), err)
	})
	runs := runsOf(17, 18)
	runs[1].Attributes = map[string]string{"user": "ada", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	for i, err := range target.HandleBatch(testContext(t), runs) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	got := await(t, "the request", bodies)
	rest, is := strings.CutPrefix(got, "POST application/cloudevents-batch+json; charset=UTF-8 ")
	var events []map[string]any
	if err := json.Unmarshal([]byte(strings.TrimSuffix(rest, "<nil>")), &events); !is || err != nil || len(events) != 2 || len(bodies) != 0 {
		t.Fatalf("the target got %s, %v", got, err)
	}
	want := map[string]any{"specversion": "1.0", "id": "18", "source": "/canvases/a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10", "type": "WORKER.push", "subject": "WORKER/push/_",
		"datacontenttype": "application/json", "time": "2024-02-29T12:00:00.123456Z", "canvasid": "a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10", "module": "WORKER", "name": "push",
		"modifier": "_", "retries": 2.0, "user": "ada", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "data": map[string]any{"n": 1.0, "s": "ü"}}
	if fmt.Sprint(events[1]) != fmt.Sprint(want) || events[0]["id"] != "17" || events[0]["user"] != nil {
		t.Errorf("the target got\n%v\nwant\n%v", events[1], want)
	}
}

// TestAnswerToABatchIsThatToEachOfItsEvents, unless it is 207.
func TestAnswerToABatchIsThatToEachOfItsEvents(t *testing.T) {
	t.Parallel()
	const unclear = "207 Multi-Status, but it does not say how the events have ended: "
	for name, c := range map[string]struct {
		status int
		body   string
		want   []string // of each event its outcome
		text   string   // of the error of the last
	}{
		"ok":                    {200, `{"17": {"status": 422}}`, []string{completed, completed, completed}, ""},
		"down":                  {500, "no disk", []string{retry, retry, retry}, "500 Internal Server Error: no disk"},
		"bad request":           {400, "", []string{permanent, permanent, permanent}, "400 Bad Request"},
		"some":                  {207, `{"17": {"status": 200}, "19": {"status": 422, "message": "no\tpage"}}`, []string{completed, completed, permanent}, "422 Unprocessable Entity: no page"},
		"some, later":           {207, `{"18": {"status": 500}, "19": {"status": 500, "message": "` + strings.Repeat("ü", 200) + `"}}`, []string{completed, retry, retry}, strings.Repeat("ü", 100) + "…"},
		"all":                   {207, `{}`, []string{completed, completed, completed}, ""},
		"no JSON":               {207, `all fine`, []string{retry, retry, retry}, unclear + `its body is not like {"17"`},
		"nothing":               {207, ``, []string{retry, retry, retry}, unclear + "its body is not like"},
		"of another event":      {207, `{"20": {"status": 500}}`, []string{retry, retry, retry}, unclear + "it has 1 ids of events that were not sent"},
		"a status that is none": {207, `{"19": {"message": "broken"}}`, []string{retry, retry, retry}, unclear + "the status of event 19 is 0"},
		"too long":              {207, `{}` + strings.Repeat(" ", maxOutcomesBytes), []string{retry, retry, retry}, unclear + "its body is not like"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			errs := target.HandleBatch(testContext(t), runsOf(17, 18, 19))
			var got []string
			for _, err := range errs {
				got = append(got, outcomeOf(err))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v: %v", got, c.want, errs)
			}
			if last := errs[len(errs)-1]; (last != nil) != (c.text != "") || last != nil && (!strings.Contains(last.Error(), c.text) || !strings.HasPrefix(last.Error(), "POST http://")) {
				t.Errorf("the error does not say %q: %v", c.text, last)
			}
		})
	}
}

// TestLargeBatchIsSeveralRequests, of which each has its own answer.
func TestLargeBatchIsSeveralRequests(t *testing.T) {
	t.Parallel()
	var lengths []int // of requests, one after the other
	target, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var events []json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
			t.Error(err)
		}
		if lengths = append(lengths, len(events)); len(lengths) == 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	runs := runsOf(1, 2, 3, 4)
	half := json.RawMessage(`"` + strings.Repeat("x", maxRequestBytes/2-2) + `"`)
	runs[0].Value, runs[1].Value, runs[3].Value = half, half, json.RawMessage(`"`+strings.Repeat("x", maxRequestBytes)+`"`)
	var got []string
	for _, err := range target.HandleBatch(testContext(t), runs) {
		got = append(got, outcomeOf(err))
	}
	if !slices.Equal(lengths, []int{2, 1, 1}) || !slices.Equal(got, []string{completed, completed, retry, completed}) {
		t.Errorf("requests of %v events, outcomes %v", lengths, got)
	}
}

// TestMessagesAboutEncryptedEventsAreLeftOut, as they may repeat the value.
func TestMessagesAboutEncryptedEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = io.WriteString(w, `{"17": {"status": 422, "message": "canary"}}`)
	})
	runs := runsOf(17, 18)
	runs[0].Encrypted = true
	if err := target.HandleBatch(testContext(t), runs)[0]; err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "422") {
		t.Errorf("%v", err)
	}
}
