package httptarget

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/otel/trace"

	"eventsv2/eventqueue"
)

// received is a request as the server got it.
type received struct {
	method, uri string
	length      int64
	header      http.Header
	body        string
	problem     error // of reading it as a CloudEvent
}

// record answers 204 to every request and passes the request on.
func record(into chan<- received) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			_, err = cehttp.NewEventFromHTTPRequest(r)
		}
		into <- received{r.Method, r.RequestURI, r.ContentLength, r.Header, string(body), err}
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestSendsACloudEventInBinaryMode(t *testing.T) {
	t.Parallel()
	got := make(chan received, 1)
	_, server := serve(t, record(got))
	target := targetFor(t, server.URL+"/push/a%2Fb?x=1&y=%20")
	run := testRun()
	if err := target.Handle(testContext(t), run); err != nil {
		t.Fatal(err)
	}
	r := await(t, "the request", got)
	if r.problem != nil {
		t.Errorf("the library cannot read it: %v", r.problem)
	}
	if r.method != http.MethodPost || r.uri != "/push/a%2Fb?x=1&y=%20" {
		t.Errorf("got %s %s", r.method, r.uri)
	}
	if r.body != string(run.Value) || r.length != int64(len(run.Value)) {
		t.Errorf("body (%d bytes announced) %q, want %q", r.length, r.body, run.Value)
	}
	for name, want := range map[string]string{
		"Ce-Specversion": "1.0",
		"Ce-Id":          "4711",
		"Ce-Source":      "/canvases/a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10",
		"Ce-Type":        "WORKER.push",
		"Ce-Subject":     "WORKER/push/_",
		"Ce-Time":        "2024-02-29T12:00:00.123456Z",
		"Ce-Canvasid":    "a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10",
		"Ce-Module":      "WORKER",
		"Ce-Name":        "push",
		"Ce-Modifier":    "_",
		"Ce-Retries":     "2",
		"Content-Type":   "application/json",
	} {
		if values := r.header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	for _, name := range []string{"Traceparent", "Tracestate", "Ce-Traceparent", "Ce-Tracestate"} {
		if values := r.header[name]; values != nil {
			t.Errorf("%s is %q without a trace", name, values)
		}
	}
}

func TestAttributesAreExtensions(t *testing.T) {
	t.Parallel()
	got := make(chan received, 1)
	target, _ := serve(t, record(got))
	run := testRun()
	run.ParentID = 17
	run.Attributes = map[string]string{
		"request-id": "ü \"7\"", "requestid": "second", "user": "", "id": "own id", "module": "own module", "parent_id": "5",
		"trace.parent": "no trace", "traceparent": "no trace either", "...": "no name",
	}
	if err := target.Handle(testContext(t), run); err != nil {
		t.Fatal(err)
	}
	r := await(t, "the request", got)
	if r.problem != nil {
		t.Errorf("the library cannot read it: %v", r.problem)
	}
	for name, want := range map[string]string{
		"Ce-Parentid": "17", "Ce-Requestid": "%C3%BC%20%227%22", "Ce-User": "", "Ce-Id": "4711", "Ce-Attrid": "own%20id",
		"Ce-Module": "WORKER", "Ce-Attrmodule": "own%20module", "Ce-Attrparentid": "5", "Ce-Attrtraceparent": "no%20trace",
	} {
		if values := r.header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	if values := r.header["Ce-Traceparent"]; values != nil {
		t.Errorf("Ce-Traceparent is %q without a trace", values)
	}
}

func TestAnyEventNameFitsInHeaders(t *testing.T) {
	t.Parallel()
	got := make(chan received, 1)
	target, _ := serve(t, record(got))
	for _, name := range []string{
		"Grüße", "😀", "100%", "%41", `"quoted"`, "a b", " leading and trailing ", " ", "a+b", "a,b;c=d", "日本語",
		"\u00a0\u2028\uFFFE", "~!#$&'()*/:<>?@[]^`{|}\\", strings.Repeat("ü", eventqueue.MaxNameBytes/2),
	} {
		run := testRun()
		run.Module, run.Name, run.Modifier = name, name, name
		if err := target.Handle(testContext(t), run); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		r := await(t, "the request", got)
		if r.problem != nil {
			t.Errorf("%q: the library cannot read it: %v", name, r.problem)
		}
		for attribute, want := range map[string]string{
			"Ce-Module": name, "Ce-Name": name, "Ce-Modifier": name,
			"Ce-Type": name + "." + name, "Ce-Subject": name + "/" + name + "/" + name,
		} {
			// PathUnescape is percent-decoding and nothing else.
			if decoded, err := url.PathUnescape(r.header.Get(attribute)); err != nil || decoded != want {
				t.Errorf("%s of %q is %q (%v)", attribute, name, r.header.Get(attribute), err)
			}
		}
	}
}

func TestPercentEncodeFollowsCloudEvents(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                "",
		"Euro € 😀":        "Euro%20%E2%82%AC%20%F0%9F%98%80",
		`a"b%c d`:         "a%22b%25c%20d",
		"\x7f\u0080":      "%7F%C2%80",
		"/canvases/a-b_c": "/canvases/a-b_c",
	} {
		if got := percentEncode(in); got != want {
			t.Errorf("percentEncode(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPercentEncode(f *testing.F) {
	f.Add("ü 😀 % \" ~")
	f.Fuzz(func(t *testing.T, in string) {
		encoded := percentEncode(in)
		for _, r := range encoded {
			if r <= ' ' || r > '~' || r == '"' {
				t.Fatalf("%q holds %q", encoded, r)
			}
		}
		if decoded, err := url.PathUnescape(encoded); err != nil || decoded != in {
			t.Fatalf("%q came back as %q: %v (valid UTF-8: %t)", in, decoded, err, utf8.ValidString(in))
		}
	})
}

func TestBodyIsTheUnchangedValue(t *testing.T) {
	t.Parallel()
	got := make(chan received, 1)
	target, _ := serve(t, record(got))
	for _, value := range []string{
		"null", "0", `""`, " { } \n", `{"a":1,"a":2}`, "1e400", `"\ud83d\ude00\/"`, "\"<&>\u2028\"",
		`"` + strings.Repeat("x", 256<<10-2) + `"`,
		"", // only SQL can write such a row
	} {
		run := testRun()
		run.Value = json.RawMessage(value)
		if err := target.Handle(testContext(t), run); err != nil {
			t.Fatal(err)
		}
		if r := await(t, "the request", got); r.body != value || r.length != int64(len(value)) {
			t.Errorf("%.40q arrived as %.40q (%d bytes announced)", value, r.body, r.length)
		}
	}
}

func TestTraceContextIsSent(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=a b%,other=1")
	if err != nil {
		t.Fatal(err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	got := make(chan received, 1)
	target, _ := serve(t, record(got))
	if err := target.Handle(trace.ContextWithSpanContext(testContext(t), span), testRun()); err != nil {
		t.Fatal(err)
	}
	r := await(t, "the request", got)
	const parent = "00-01020300000000000000000000000000-0405060000000000-01"
	for name, want := range map[string]string{
		"Traceparent": parent, "Ce-Traceparent": parent,
		"Tracestate": "vendor=a b%,other=1", "Ce-Tracestate": "vendor=a%20b%25,other=1",
	} {
		if values := r.header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
}
