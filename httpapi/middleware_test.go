package httpapi_test

import (
	"context"
	"fmt"
	"testing"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/httpapi"
	"eventsv2/test/rig"
)

// TestRefusalOfAMiddlewareIsAnAnswer, whichever event it says that it concerns.
func TestRefusalOfAMiddlewareIsAnAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	emit := c.token(rig.Canvas, access.Emit)
	for _, index := range []int{0, 1000, -1} {
		queue, err := eventqueue.New(c.Store, c.Notifier, eventqueue.QueueConfig{EmitMiddleware: []eventqueue.EmitMiddleware{
			func(context.Context, []eventqueue.NewEvent, eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
				return nil, &eventqueue.InvalidError{Index: index, Field: "name", Problem: "is retired"}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		c.with(func(config *httpapi.Config) { config.Queue = queue })
		event := fmt.Sprintf(`{"canvas_id":%q,"module":"M","name":"fax","value":1}`, rig.Canvas)
		c.wants(422, "name: is retired", emit, "POST", "/events", event)
		c.wants(422, "name: is retired", emit, "POST", "/events/batch", `{"events":[`+event+`]}`)
	}
}
