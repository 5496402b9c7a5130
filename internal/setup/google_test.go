package setup_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"eventsv2/internal/logkey"
	"eventsv2/internal/setup"
)

// TestLogLineLinksTraceAndEvent, wherever its fields come from.
func TestLogLineLinksTraceAndEvent(t *testing.T) {
	t.Parallel()
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	event := []zap.Field{zap.String(logkey.Event, "7"), zap.String(logkey.Handler, "WORKER/mail/_")}
	labels := map[string]any{"event_id": "7", "handler": "WORKER/mail/_"}
	for name, c := range map[string]struct {
		project string
		with    []zap.Field
		fields  []zap.Field
		want    map[string]any
	}{
		"neither": {"shop", nil, []zap.Field{zap.Int("count", 2)}, map[string]any{"count": 2.0}},
		"both": {"shop", nil, append(event, zap.String(logkey.Traceparent, "00-"+trace+"-"+span+"-01")), map[string]any{
			"event_id": "7", "handler": "WORKER/mail/_", "logging.googleapis.com/labels": labels,
			"logging.googleapis.com/trace": "projects/shop/traces/" + trace, "logging.googleapis.com/spanId": span, "logging.googleapis.com/trace_sampled": true}},
		"in parts": {"shop", event[:1], append(event[1:], zap.String(logkey.Traceparent, "00-"+trace+"-"+span+"-02")), map[string]any{
			"event_id": "7", "handler": "WORKER/mail/_", "logging.googleapis.com/labels": labels,
			"logging.googleapis.com/trace": "projects/shop/traces/" + trace, "logging.googleapis.com/spanId": span, "logging.googleapis.com/trace_sampled": false}},
		"no project":    {"", nil, []zap.Field{zap.String(logkey.Traceparent, "00-"+trace+"-"+span+"-01")}, map[string]any{"traceparent": "00-" + trace + "-" + span + "-01"}},
		"no such trace": {"shop", nil, []zap.Field{zap.String(logkey.Traceparent, "not ours")}, map[string]any{"traceparent": "not ours"}},
	} {
		var out bytes.Buffer
		log, err := setup.NewLogger(setup.LogConfig{Style: "json", Level: "info", Project: c.project}, &out)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("not written", c.fields...)
		log.With(c.with...).Info("m", c.fields...)
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(got, func(key string, _ any) bool { return key == "time" || key == "severity" || key == "message" })
		if difference := cmp.Diff(c.want, got); difference != "" {
			t.Errorf("%s: (-want +got)\n%s", name, difference)
		}
		if n := bytes.Count(out.Bytes(), []byte(`"logging.googleapis.com/labels"`)); n > 1 {
			t.Errorf("%s: labels are there %d times: %s", name, n, &out)
		}
	}
}
