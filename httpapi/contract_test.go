package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"

	"eventsv2/access"
	"eventsv2/test/rig"
)

// contract holds requests and answers to the OpenAPI document that the API serves.
type contract struct {
	once      sync.Once
	mu        sync.Mutex // the library says nothing of concurrent use
	validator validator.Validator
}

var described contract

// read reads the document, of the first API that a test makes.
func (c *contract) read(t *testing.T, api http.Handler) {
	t.Helper()
	c.once.Do(func() {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.example/v1/openapi.json", nil))
		document, err := libopenapi.NewDocument(w.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		made, errs := validator.NewValidator(document)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if valid, errs := made.ValidateDocument(); !valid {
			t.Fatalf("the document is not valid OpenAPI: %s", texts(errs))
		}
		c.validator = made
	})
	if c.validator == nil {
		t.Fatal("there is no OpenAPI document")
	}
}

// refuses returns why a request, or its answer, is not as the document says; empty if it is. A request that the API has taken for
// wrong, or has refused before it read it, may be wrong.
func (c *contract) refuses(r *http.Request, body string, answer *httptest.ResponseRecorder) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	again := func() *http.Request {
		request := r.Clone(r.Context())
		request.Body = io.NopCloser(strings.NewReader(body))
		return request
	}
	switch answer.Code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
	default:
		if valid, errs := c.validator.ValidateHttpRequest(again()); !valid {
			return "the request: " + texts(errs)
		}
	}
	response := answer.Result()
	response.Body = io.NopCloser(bytes.NewReader(answer.Body.Bytes()))
	if valid, errs := c.validator.ValidateHttpResponse(again(), response); !valid {
		return "the answer: " + texts(errs)
	}
	return ""
}

func texts(errs []*errors.ValidationError) string {
	var all []string
	for _, err := range errs {
		text := err.Message + ": " + err.Reason
		for _, of := range err.SchemaValidationErrors {
			text += "; " + of.FieldPath + " " + of.Reason
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// TestContractViolationsAreRefused shows that a request and an answer that the document does not allow are noticed.
func TestContractViolationsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	token := c.token(rig.Canvas, access.Read)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.example/v1/workers", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	answered := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = w.WriteString(body)
		return w
	}
	if why := described.refuses(r, "", answered(`{"items":[]}`)); why != "" {
		t.Errorf("what is right is refused: %s", why)
	}
	for _, body := range []string{`{"items":null}`, `{}`, `{"items":[{"number":"7"}]}`, `{"items":[],"surplus":1}`} {
		if described.refuses(r, "", answered(body)) == "" {
			t.Errorf("the answer %s is taken for right", body)
		}
	}
	wrong := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example/v1/crons/enable", nil)
	wrong.Header.Set("Content-Type", "application/json")
	if described.refuses(wrong, `{"canvas_id":1}`, answered(`{"canvas_id":"ca170000-0000-0000-0000-000000000001","name":"a","enabled":true}`)) == "" {
		t.Error("a wrong request is taken for right")
	}
}
