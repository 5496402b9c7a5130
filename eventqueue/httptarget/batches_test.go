package httptarget

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// togetherOf is outcomeOf for one of several events of a request.
func togetherOf(err error) string {
	if errors.As(err, new(togetherError)) {
		return sentAlone
	}
	return outcomeOf(err)
}

// sentAlone means that an event is sent again alone, and uses no attempt.
const sentAlone = "alone"

// TestAnswerToABatchIsThatToEachOfItsEvents, unless it is 207, or one of them may be at fault.
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
		"down":                  {503, "no disk", []string{retry, retry, retry}, "503 Service Unavailable: no disk"},
		"gone":                  {404, "", []string{permanent, permanent, permanent}, "404 Not Found"},
		"moved":                 {301, "", []string{permanent, permanent, permanent}, "301 Moved Permanently"},
		"bad request":           {400, "", []string{sentAlone, sentAlone, sentAlone}, "sent again alone: POST"},
		"too large":             {413, "", []string{sentAlone, sentAlone, sentAlone}, "413 Request Entity Too Large"},
		"broken":                {500, "", []string{sentAlone, sentAlone, sentAlone}, "500 Internal Server Error"},
		"nothing known":         {207, `null`, []string{retry, retry, retry}, unclear + "its body is not like"},
		"null":                  {207, `{"19": null}`, []string{retry, retry, retry}, unclear + "its body is not like"},
		"twice":                 {207, `{"19": {"status": 422}, "19": {"status": 200}}`, []string{retry, retry, retry}, unclear + "its body is not like"},
		"more":                  {207, `{} {}`, []string{retry, retry, retry}, unclear + "its body is not like"},
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
				got = append(got, togetherOf(err))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v: %v", got, c.want, errs)
			}
			if last := errs[len(errs)-1]; (last != nil) != (c.text != "") || last != nil && (!strings.Contains(last.Error(), c.text) || !strings.Contains(last.Error(), "POST http://")) {
				t.Errorf("the error does not say %q: %v", c.text, last)
			}
		})
	}
}

// TestLargeBatchIsSeveralRequests, of which each has its own answer.
func TestLargeBatchIsSeveralRequests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var lengths []int
	target, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var events []struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if lengths = append(lengths, len(events)); events[0].ID == "3" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	runs := runsOf(1, 2, 3, 4)
	half := json.RawMessage(`"` + strings.Repeat("x", maxRequestBytes/2-2000) + `"`)
	runs[0].Value, runs[1].Value, runs[3].Value = half, half, json.RawMessage(`"`+strings.Repeat("x", maxRequestBytes)+`"`)
	runs[2].Attributes = map[string]string{"note": strings.Repeat("x", 4000)}
	var got []string
	for _, err := range target.HandleBatch(testContext(t), runs) {
		got = append(got, togetherOf(err))
	}
	slices.Sort(lengths)
	if !slices.Equal(lengths, []int{1, 1, 2}) || !slices.Equal(got, []string{completed, completed, retry, completed}) {
		t.Errorf("requests of %v events, outcomes %v", lengths, got)
	}
}

// TestRefusalOfOneEventIsItsOwn: nothing is sent again alone.
func TestRefusalOfOneEventIsItsOwn(t *testing.T) {
	t.Parallel()
	target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	if errs := target.HandleBatch(testContext(t), runsOf(17)); len(errs) != 1 || togetherOf(errs[0]) != permanent {
		t.Errorf("%v", errs)
	}
}

// TestValueThatIsNoJSONIsSentAlone, and as it is.
func TestValueThatIsNoJSONIsSentAlone(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 10)
	target, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		bodies <- fmt.Sprint(r.Header.Get("Ce-Id"), " ", len(body), err)
	})
	runs := runsOf(17, 18, 19)
	runs[1].Value = json.RawMessage(`{no JSON`)
	for i, err := range target.HandleBatch(testContext(t), runs) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	got := []string{await(t, "a request", bodies), await(t, "the other request", bodies)}
	if !slices.Contains(got, "18 8 <nil>") || len(bodies) != 0 {
		t.Errorf("the target got %q", got)
	}
}

// TestValuesInABatchAreTheSameBytes.
func TestValuesInABatchAreTheSameBytes(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	target, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	})
	runs := runsOf(17, 18)
	runs[1].Value = json.RawMessage(`{"n":  1.0, "a": "<&>"}`)
	target.HandleBatch(testContext(t), runs)
	if got := await(t, "the request", bodies); !strings.Contains(got, string(runs[0].Value)) || !strings.Contains(got, string(runs[1].Value)) {
		t.Errorf("the target got %s", got)
	}
}

// TestTextsOfOtherEventsAreLeftOut: of encrypted ones, since they may repeat a value, and of several canvases.
func TestTextsOfOtherEventsAreLeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(runs []*eventqueue.Run)
		status int
		body   string
		want   string
	}{
		"encrypted, each":   {func(runs []*eventqueue.Run) { runs[0].Encrypted = true }, 207, `{"18": {"status": 422, "message": "canary"}}`, "422 Unprocessable Entity: its text is left out"},
		"encrypted, all":    {func(runs []*eventqueue.Run) { runs[0].Encrypted = true }, 503, "canary", "503 Service Unavailable: its text is left out"},
		"of another canvas": {func(runs []*eventqueue.Run) { runs[0].Canvas[0]++ }, 503, "canary", "503 Service Unavailable: its text is left out, as it may be about an event of another canvas"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			runs := runsOf(17, 18)
			c.change(runs)
			if err := target.HandleBatch(testContext(t), runs)[1]; err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestRequestsOfOtherContentHaveOtherIDs: a target that has seen an id may leave the request out.
func TestRequestsOfOtherContentHaveOtherIDs(t *testing.T) {
	t.Parallel()
	ids := map[string]string{}
	for name, runs := range map[string][]*eventqueue.Run{"three": runsOf(17, 18, 19), "two": runsOf(17, 19), "the first": runsOf(17), "again": runsOf(17, 18, 19)} {
		if name == "again" {
			runs[1].Retries++
		}
		id := (&together{runs: runs}).id()
		if other, twice := ids[id]; twice {
			t.Errorf("%s and %s have the id %s", name, other, id)
		}
		ids[id] = name
	}
	if id := (&together{runs: runsOf(17, 19)}).id(); ids["17"] != "the first" || ids[id] != "two" {
		t.Errorf("the ids are %v", ids)
	}
}

// TestSecretsAreLeftOutOfOutcomes, also if they are at the end of what is shown.
func TestSecretsAreLeftOutOfOutcomes(t *testing.T) {
	t.Parallel()
	const secret = "top-secret-of-the-header"
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusMultiStatus)
		_ = json.NewEncoder(w).Encode(map[string]outcome{"17": {422, "you sent " + r.Header.Get("X-Key")}, "18": {422, strings.Repeat("x", excerptBytes-10) + r.Header.Get("X-Key")}})
	})
	target, err := New(Config{URL: server.URL, Header: http.Header{"X-Key": {secret}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range target.HandleBatch(testContext(t), runsOf(17, 18)) {
		if err == nil || strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("%v", err)
		}
	}
}

func TestTargetOfAnswersTakesNoBatches(t *testing.T) {
	t.Parallel()
	target := targetFor(t, "http://127.0.0.1:1")
	target.answers = RetainAnswers
	for _, err := range target.HandleBatch(testContext(t), runsOf(17, 18)) {
		if outcomeOf(err) != permanent {
			t.Errorf("%v", err)
		}
	}
}

// TestOutcomesThatBreakOffAreAFailedAttempt.
func TestOutcomesThatBreakOffAreAFailedAttempt(t *testing.T) {
	t.Parallel()
	target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = io.WriteString(w, `{}`)
	})
	for _, err := range target.HandleBatch(testContext(t), runsOf(17, 18)) {
		if outcomeOf(err) != retry || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%v", err)
		}
	}
}
