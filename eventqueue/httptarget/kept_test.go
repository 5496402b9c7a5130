package httptarget

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

// keeper is a Completer that keeps results.
type keeper struct {
	eventqueue.Completer
	result string
}

func (k *keeper) SetResult(result any) error {
	text, err := json.Marshal(result)
	if len(text) > mostKept {
		return errors.New("too much")
	}
	k.result = string(text)
	return err
}

const mostKept = 1000

func TestAnswerIsKeptAsTheResult(t *testing.T) {
	t.Parallel()
	longest := `"` + strings.Repeat("x", mostKept-2) + `"`
	for name, c := range map[string]struct {
		status int
		body   string
		kept   string
		want   string // outcome
		text   string
	}{
		"JSON":              {200, ` {"rows": 7} `, `{"rows":7}`, completed, ""},
		"the longest":       {201, longest, longest, completed, ""},
		"none":              {204, ``, ``, completed, ""},
		"too long":          {200, `"` + longest[1:len(longest)-1] + `x"`, ``, retry, "200 OK, but the answer cannot be kept as the result: too much"},
		"far too long":      {200, `7` + strings.Repeat(" ", MaxAnswerBytes), ``, retry, "200 OK, but the answer cannot be kept as the result: it has more than 524288 bytes"},
		"no JSON":           {200, `fine`, ``, retry, "200 OK, but the answer cannot be kept as the result: it is no JSON"},
		"that of a failure": {500, `{"rows": 7}`, ``, retry, "500 Internal Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			target.answers = RetainAnswers
			kept := &keeper{}
			run := testRun()
			run.Completer = kept
			err := target.Handle(testContext(t), run)
			if outcomeOf(err) != c.want || kept.result != c.kept {
				t.Errorf("%v, kept %.100s", err, kept.result)
			}
			if err != nil && (!strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "POST http://")) {
				t.Errorf("the error does not say %q: %v", c.text, err)
			}
		})
	}
}

// TestAnswerThatBreaksOffIsNoResult: the target gets the event again.
func TestAnswerThatBreaksOffIsNoResult(t *testing.T) {
	t.Parallel()
	target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"rows": 7}`)
	})
	target.answers = RetainAnswers
	kept := &keeper{}
	run := testRun()
	run.Completer = kept
	if err := target.Handle(context.Background(), run); err == nil || kept.result != "" || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("%v, kept %s", err, kept.result)
	}
}
