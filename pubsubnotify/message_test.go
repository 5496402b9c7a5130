package pubsubnotify

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"eventsv2/eventqueue"
	"eventsv2/internal/trace"
)

const (
	canvasText  = "01020300-0000-0000-0000-000000000000"
	traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

func TestEncodeWritesTheDocumentedFormat(t *testing.T) {
	t.Parallel()
	n := notification(123)
	n.Traceparent = traceparent
	messages, err := encode([]eventqueue.Notification{n, notification(math.MaxInt64)})
	if err != nil {
		t.Fatalf("encode = %v, want nil", err)
	}
	if got, want := string(messages[0].GetData()), `{"id": 123, "canvas_id": "`+canvasText+`"}`; got != want {
		t.Errorf("data = %s, want %s", got, want)
	}
	if got := messages[0].GetAttributes()["traceparent"]; got != traceparent {
		t.Errorf("traceparent = %q, want %q", got, traceparent)
	}
	if got := messages[1].GetAttributes(); len(got) != 0 {
		t.Errorf("attributes = %v without a trace context, want none", got)
	}
	if size := len(messages[1].GetData()); size > maxDataBytes {
		t.Errorf("the longest notification has %d bytes, and decode takes %d", size, maxDataBytes)
	}
}

func TestEncodeRefusesAnEventWithoutID(t *testing.T) {
	t.Parallel()
	for _, id := range []int64{0, -1} {
		if _, err := encode([]eventqueue.Notification{notification(1), notification(id)}); err == nil {
			t.Errorf("encode of event %d = nil error, want one", id)
		}
	}
}

func TestUnusableTraceContextIsIgnored(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"00-é", "two words", "\xff", strings.Repeat("0", trace.MaxParentBytes+1)} {
		n := notification(1)
		n.Traceparent = bad
		messages, err := encode([]eventqueue.Notification{n})
		if err != nil {
			t.Fatalf("encode with traceparent %q = %v, want nil", bad, err)
		}
		messages[0].Attributes = map[string]string{traceparentKey: bad}
		if got, err := decode(messages[0]); err != nil || got != notification(1) {
			t.Errorf("decode with traceparent %q = %+v, %v, want it without", bad, got, err)
		}
	}
}

func TestInvalidMessageIsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"nothing":             ``,
		"not JSON":            `ring ring`,
		"invalid UTF-8":       "\xff\xfe",
		"null":                `null`,
		"a number":            `17`,
		"an array":            `[{"id": 1, "canvas_id": "` + canvasText + `"}]`,
		"no fields":           `{}`,
		"no id":               `{"canvas_id": "` + canvasText + `"}`,
		"a null id":           `{"id": null, "canvas_id": "` + canvasText + `"}`,
		"id 0":                `{"id": 0, "canvas_id": "` + canvasText + `"}`,
		"a negative id":       `{"id": -1, "canvas_id": "` + canvasText + `"}`,
		"a fractional id":     `{"id": 1.5, "canvas_id": "` + canvasText + `"}`,
		"an id beyond bigint": `{"id": 9223372036854775808, "canvas_id": "` + canvasText + `"}`,
		"an id in quotes":     `{"id": "1", "canvas_id": "` + canvasText + `"}`,
		"no canvas":           `{"id": 1}`,
		"no uuid":             `{"id": 1, "canvas_id": "a canvas"}`,
		"a uuid in braces":    `{"id": 1, "canvas_id": "{` + canvasText + `}"}`,
		"an unknown field":    `{"id": 1, "canvas_id": "` + canvasText + `", "value": 1}`,
		"trailing JSON":       `{"id": 1, "canvas_id": "` + canvasText + `"} {}`,
		"trailing garbage":    `{"id": 1, "canvas_id": "` + canvasText + `"}}`,
		"over-long":           `{"id": 1, "canvas_id": "` + canvasText + `"}` + strings.Repeat(" ", maxDataBytes),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n, err := decode(&pubsubpb.PubsubMessage{Data: []byte(data)}); err == nil {
				t.Errorf("decode(%q) = %+v, want an error", data, n)
			}
		})
	}
	if _, err := decode(nil); err == nil {
		t.Error("decode of no message = nil error, want one")
	}
}

// TestFastDecodeAgreesWithJSON: the reader of this project's own form takes
// nothing that the reader of JSON refuses, and reads nothing else in it. A space
// in front leaves a message to the latter.
func TestFastDecodeAgreesWithJSON(t *testing.T) {
	t.Parallel()
	message := func(id, canvas string) string { return `{"id": ` + id + `, "canvas_id": "` + canvas + `"}` }
	upper, lower := "ABCDEF01-2345-6789-ABCD-EF0123456789", "abcdef01-2345-6789-abcd-ef0123456789"
	for name, c := range map[string]struct {
		data string
		own  bool
	}{
		"canonical":             {message("123", canvasText), true},
		"the smallest id":       {message("1", canvasText), true},
		"18 digits":             {message("999999999999999999", canvasText), true},
		"19 digits":             {message("1000000000000000000", canvasText), false},
		"the largest id":        {message("9223372036854775807", canvasText), false},
		"an id beyond bigint":   {message("9223372036854775808", canvasText), false},
		"19 nines":              {message("9999999999999999999", canvasText), false},
		"20 digits":             {message("18446744073709551617", canvasText), false}, // 1 if it overflows
		"id 0":                  {message("0", canvasText), false},
		"a leading zero":        {message("0123", canvasText), false},
		"many leading zeros":    {message("000000000000000001", canvasText), false},
		"a sign":                {message("+1", canvasText), false},
		"a negative id":         {message("-1", canvasText), false},
		"no digits":             {message("", canvasText), false},
		"a hundred":             {message("1e2", canvasText), false},
		"a space after the id":  {message("1 ", canvasText), false},
		"a lower-case uuid":     {message("1", lower), true},
		"an upper-case uuid":    {message("1", upper), true},
		"a uuid in braces":      {message("1", "{"+canvasText+"}"), false},
		"a uuid without dashes": {message("1", strings.ReplaceAll(canvasText, "-", "")), false},
		"an escape in the uuid": {message("1", `\u0030`+canvasText[1:]), false},
		"a short uuid":          {message("1", canvasText[1:]), false},
		"no uuid":               {message("1", ""), false},
		"another field":         {message("1", canvasText+`", "value": "`), false},
		"a second id":           {message("1", canvasText+`", "id": 2, "canvas_id": "`+lower), false},
		"trailing space":        {message("1", canvasText) + " ", false},
		"a trailing byte":       {message("1", canvasText) + "}", false},
		"a trailing zero byte":  {message("1", canvasText) + "\x00", false},
		"twice":                 {message("1", canvasText) + message("1", canvasText), false},
		"nothing":               {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, ok := decodeOwn([]byte(c.data))
			if ok != c.own {
				t.Errorf("decodeOwn(%q) = %+v, %v, want %v", c.data, own, ok, c.own)
			}
			got, err := decodeData([]byte(c.data))
			want, wantErr := decodeData([]byte(" " + c.data))
			if got != want || (err == nil) != (wantErr == nil) {
				t.Errorf("decodeData(%q) = %+v, %v, and as other JSON %+v, %v", c.data, got, err, want, wantErr)
			}
		})
	}
}

// FuzzDecode checks that no message makes decode panic, and that what it takes is
// a notification that comes through encode and decode unchanged.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id": 123, "canvas_id": "`+canvasText+`"}`), traceparent)
	f.Add([]byte(`{"canvas_id":"01020300-0000-0000-0000-00000000000F","id":9223372036854775807}`), "")
	f.Add([]byte(` {"ID" : 1 , "id" : 2, "canvas_id": "`+canvasText+`"} `), "00-é")
	f.Add([]byte(`{"id": 1e2, "canvas_id": "`+canvasText+`"}`), "\x00")
	f.Add([]byte(`{"id": 1, "canvas_id": "`+canvasText+`"}{`), " ")
	f.Add([]byte("\xff"), "\xff")
	f.Fuzz(func(t *testing.T, data []byte, traceparent string) {
		first, err := decode(&pubsubpb.PubsubMessage{
			Data:       data,
			Attributes: map[string]string{traceparentKey: traceparent},
		})
		if err != nil {
			return
		}
		messages, err := encode([]eventqueue.Notification{first})
		if err != nil {
			t.Fatalf("encode(%+v) = %v, though decode made it", first, err)
		}
		if !json.Valid(messages[0].GetData()) {
			t.Fatalf("encode(%+v) = %s, which is not JSON", first, messages[0].GetData())
		}
		second, err := decode(messages[0])
		if err != nil || second != first {
			t.Fatalf("decode(encode(%+v)) = %+v, %v", first, second, err)
		}
	})
}
