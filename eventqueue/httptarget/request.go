package httptarget

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/cloudevents/sdk-go/v2/types"
	"go.opentelemetry.io/otel/propagation"

	"eventsv2/eventqueue"
)

const userAgent = "eventsv2"

// newRequest makes the POST of an event.
func newRequest(ctx context.Context, to address, event *eventqueue.Event) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", userAgent)
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	for name, value := range trace {
		request.Header.Set(name, value)
	}
	message := binding.ToMessage(cloudEvent(event, trace))
	if err := cehttp.WriteRequest(binding.WithForceBinary(ctx), message, request); err != nil {
		return nil, err
	}
	encodeAttributes(request.Header)
	return request, nil
}

// cloudEvent fills in the attributes. It sets them directly, because the setters
// of the library trim white space, which is part of a name.
func cloudEvent(event *eventqueue.Event, trace propagation.MapCarrier) *cloudevent.Event {
	contentType, subject := "application/json", event.Handler().String()
	attributes := &cloudevent.EventContextV1{
		ID:              event.ID.String(),
		Source:          types.URIRef{URL: url.URL{Path: "/canvases/" + event.Canvas.String()}},
		Type:            event.Module + "." + event.Name,
		Subject:         &subject,
		DataContentType: &contentType,
		Extensions: map[string]any{
			"canvasid": event.Canvas.String(),
			"module":   event.Module,
			"name":     event.Name,
			"modifier": event.Modifier,
			"retries":  event.Retries,
		},
	}
	if !event.EnqueuedAt.IsZero() {
		attributes.Time = &types.Timestamp{Time: event.EnqueuedAt}
	}
	for name, value := range trace {
		attributes.Extensions[name] = value
	}
	if event.ParentID != 0 {
		attributes.Extensions["parentid"] = event.ParentID.String()
	}
	addAttributes(attributes.Extensions, event.Attributes)
	return &cloudevent.Event{Context: attributes, DataEncoded: event.Value}
}

// addAttributes adds the attributes of an event as extensions. The name of an extension has
// lower-case letters and digits only, so that other characters of a key are left out; a name that
// is taken gets a prefix. Of two keys with the same name the first in their order is sent.
func addAttributes(extensions map[string]any, attributes map[string]string) {
	names := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		name := strings.NewReplacer("_", "", ".", "", "-", "").Replace(key)
		if _, taken := extensions[name]; taken && !names[name] || reserved[name] {
			name = "attr" + name
		}
		if name == "" || names[name] || key == "traceparent" { // it has the trace of the run
			continue
		}
		names[name], extensions[name] = true, attributes[key]
	}
}

// reserved are the names that CloudEvents, and its trace extension, give a meaning.
var reserved = map[string]bool{"id": true, "source": true, "specversion": true, "type": true, "datacontenttype": true,
	"dataschema": true, "subject": true, "time": true, "data": true, "traceparent": true, "tracestate": true, "parentid": true}

// encodeAttributes percent-encodes the attributes, which the library writes as
// they are.
func encodeAttributes(header http.Header) {
	for name, values := range header {
		if !strings.HasPrefix(name, "Ce-") {
			continue
		}
		for i, value := range values {
			values[i] = percentEncode(value)
		}
	}
}

// percentEncode writes every byte that is not visible ASCII, and the space, the
// quote and the percent sign, as %XX. Bytes are of UTF-8.
func percentEncode(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var encoded strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7F && c != '"' && c != '%' {
			encoded.WriteByte(c)
		} else {
			encoded.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&0xF]})
		}
	}
	return encoded.String()
}
