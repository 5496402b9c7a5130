package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/intake"
	"eventsv2/internal/sqlstate"
)

// What bounds a refusal: together less than 64 kB, also where JSON escapes each byte with six.
const (
	maxErrors        = 20
	maxDetailBytes   = 1024
	maxMessageBytes  = 250
	maxLocationBytes = 100
	maxValueBytes    = 100
)

// cut is a Transformer that bounds refusals: they show what was sent, of which there may be megabytes, and for each part of it.
func cut(_ huma.Context, _ string, answered any) (any, error) {
	problem, is := answered.(*huma.ErrorModel)
	if !is {
		return answered, nil
	}
	if len(problem.Errors) > maxErrors {
		problem.Errors = problem.Errors[:maxErrors]
		problem.Detail += "; only the first errors are shown"
	}
	problem.Detail = short(problem.Detail, maxDetailBytes)
	for i, e := range problem.Errors {
		problem.Errors[i] = &huma.ErrorDetail{Message: short(plain(e.Message), maxMessageBytes), Location: short(e.Location, maxLocationBytes), Value: quoted(e.Value)}
	}
	return problem, nil
}

// plain is a message of huma with its bound in digits, which huma writes as 4e+09.
func plain(message string) string {
	if words, bound, is := strings.Cut(message, "= "); is && strings.HasPrefix(words, "expected number ") {
		if n, err := strconv.ParseFloat(bound, 64); err == nil {
			return words + "= " + strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return message
}

// quoted is a value as errors show it: nothing of lists and objects.
func quoted(value any) any {
	switch v := value.(type) {
	case string:
		return short(v, maxValueBytes)
	case bool, float64, int, int64:
		return v
	default:
		return nil
	}
}

// short is the beginning of a text.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most -= len("…")
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most]) + "…" // a clone, so that the whole text can be freed
}

// refuse answers a request with an error of huma.
func (a *api) refuse(ctx huma.Context, err huma.StatusError) {
	_ = huma.WriteErr(a.huma, ctx, err.GetStatus(), err.Error()) // an answerWriter has no errors
}

// writeProblem answers a request that no operation of huma is asked for.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: short(detail, maxDetailBytes)})
}

// known answers requests for which there is no operation.
func known(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, allow := intake.Unrouted(mux, r)
		if asked := r.URL.EscapedPath(); path.Clean(asked) != strings.TrimSuffix(asked, "/") {
			status = http.StatusNotFound // the mux would redirect it to another path
		}
		switch status {
		case 0:
			mux.ServeHTTP(w, r)
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", allow)
			writeProblem(w, status, r.Method+" is not for this path, which takes "+allow)
		default:
			writeProblem(w, status, "there is no such path: see /v1/openapi.json")
		}
	})
}

// answerWriter writes answers. Huma writes errors of it to the standard error output, where only the lines of the log
// belong: so they are logged here, and not returned. Mostly the client has hung up.
type answerWriter struct {
	http.ResponseWriter
	log *zap.Logger
}

// Unwrap is for http.ResponseController.
func (w answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w answerWriter) Write(part []byte) (int, error) {
	if _, err := w.ResponseWriter.Write(part); err != nil {
		w.log.Debug("could not write an answer", zap.Error(err))
	}
	return len(part), nil
}

const noAnswer = "the database does not answer"

// failed is the answer for an error of an operation.
func (a *api) failed(what string, err error) error {
	var invalid *eventqueue.InvalidError
	switch {
	case errors.As(err, &invalid):
		return huma.Error422UnprocessableEntity(invalid.Field + ": " + invalid.Problem)
	case sqlstate.RefusedKey(err) != "":
		return huma.Error422UnprocessableEntity(sqlstate.RefusedKey(err))
	case sqlstate.UnusableText(err):
		return huma.Error422UnprocessableEntity("the request has a text that the database cannot hold: with the character NUL, or not UTF-8")
	}
	a.Logger.Error("a request of the API failed", zap.String("operation", what), zap.Error(err))
	if errors.Is(err, context.DeadlineExceeded) {
		return huma.Error503ServiceUnavailable(noAnswer + " in time: what was to be changed may have been, so look before you try again")
	}
	return huma.Error500InternalServerError("the request failed: see the log of the server")
}
