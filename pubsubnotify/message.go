package pubsubnotify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"eventsv2/eventqueue"
	"eventsv2/internal/trace"
)

// traceparentKey is the message attribute that carries the trace context.
const traceparentKey = "traceparent"

// maxDataBytes bounds the data that decode reads. The longest notification has 85 bytes;
// the rest is room for white space.
const maxDataBytes = 256

// encode makes the messages of a batch. It refuses notifications that decode would not
// accept.
func encode(notifications []eventqueue.Notification) ([]*pubsubpb.PubsubMessage, error) {
	messages := make([]*pubsubpb.PubsubMessage, len(notifications))
	for i, n := range notifications {
		if n.Event <= 0 {
			return nil, fmt.Errorf("encode notification %d of %d: event id %d is not positive; pass the id that the database gave",
				i, len(notifications), n.Event)
		}
		messages[i] = &pubsubpb.PubsubMessage{Data: encodeData(n)}
		// The notification, and its batch, must not fail because of a trace context
		// that Pub/Sub would refuse.
		if trace.ValidParent(n.Traceparent) {
			messages[i].Attributes = map[string]string{traceparentKey: n.Traceparent}
		}
	}
	return messages, nil
}

// The constant parts of the text that encodeData makes.
const (
	beforeID     = `{"id": `
	beforeCanvas = `, "canvas_id": "`
	afterCanvas  = `"}`
)

func encodeData(n eventqueue.Notification) []byte {
	data := make([]byte, 0, 88)
	data = append(data, beforeID...)
	data = strconv.AppendInt(data, int64(n.Event), 10)
	data = append(data, beforeCanvas...)
	data = append(data, n.Canvas.String()...)
	return append(data, afterCanvas...)
}

// decodeOwn reads exactly the form that encodeData writes. Most messages have that form,
// and reading JSON of any form takes ten times as long.
func decodeOwn(data []byte) (n eventqueue.Notification, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(beforeID))
	if !ok {
		return n, false
	}
	id, rest, ok := bytes.Cut(rest, []byte(beforeCanvas))
	if !ok || len(id) == 0 || len(id) > maxOwnDigits || id[0] == '0' {
		return n, false
	}
	for _, digit := range id {
		if digit < '0' || digit > '9' {
			return n, false
		}
		n.Event = n.Event*10 + eventqueue.EventID(digit-'0')
	}
	canvas, ok := bytes.CutSuffix(rest, []byte(afterCanvas))
	if !ok {
		return n, false
	}
	var err error
	n.Canvas, err = eventqueue.ParseCanvasID(string(canvas))
	return n, err == nil
}

// maxOwnDigits prevents the overflow of an id. Longer ids are left to the JSON decoder.
const maxOwnDigits = 18

// decode reads a message, which anybody may have published. Its error says why the
// message is no notification.
func decode(message *pubsubpb.PubsubMessage) (eventqueue.Notification, error) {
	n, err := decodeData(message.GetData())
	if err != nil {
		return eventqueue.Notification{}, err
	}
	if traceparent := message.GetAttributes()[traceparentKey]; trace.ValidParent(traceparent) {
		n.Traceparent = traceparent
	}
	return n, nil
}

func decodeData(data []byte) (eventqueue.Notification, error) {
	if n, ok := decodeOwn(data); ok {
		return n, nil
	}
	var none eventqueue.Notification
	if len(data) > maxDataBytes {
		return none, fmt.Errorf("it has %d bytes, and a notification at most %d", len(data), maxDataBytes)
	}
	var fields struct {
		ID     *eventqueue.EventID `json:"id"`
		Canvas *string             `json:"canvas_id"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fields); err != nil {
		return none, fmt.Errorf(`it is not the JSON {"id", "canvas_id"}: %w`, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return none, errors.New("something follows its JSON")
	}
	switch {
	case fields.ID == nil:
		return none, errors.New("it has no id")
	case *fields.ID <= 0:
		return none, fmt.Errorf("its id %d is not positive", *fields.ID)
	case fields.Canvas == nil:
		return none, errors.New("it has no canvas_id")
	}
	canvas, err := eventqueue.ParseCanvasID(*fields.Canvas)
	if err != nil {
		return none, err
	}
	return eventqueue.Notification{Event: *fields.ID, Canvas: canvas}, nil
}
