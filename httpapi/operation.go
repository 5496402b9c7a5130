package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/access"
)

// The largest bodies: of operations that take values of events, and of all others.
const (
	largeBody = 8 << 20
	smallBody = 64 << 10
)

// option is about an operation that changes something.
type option func(o *options)

type options struct {
	status  int
	repeats bool
	maxBody int64
}

// creates has an operation answer 201.
func creates(o *options) { o.status = http.StatusCreated }

// repeats has an operation answer 200 where creates has 201, of a request that had been made before. Its body is the same.
func repeats(o *options) { o.repeats = true }

// takesValues lets an operation take the values of events.
func takesValues(o *options) { o.maxBody = largeBody }

// get adds an operation that only reads.
func get[I, O any](a *api, path, name, summary string, f func(ctx context.Context, input *I) (*O, error)) {
	huma.Register(a.huma, huma.Operation{OperationID: name, Method: http.MethodGet, Path: "/v1" + path, Summary: summary}, f)
}

// change adds an operation that changes something, for a method and a path. A caller who has its verb on no canvas is refused
// before the body is read; f checks the verb on the canvas that the request is for, which may be in the body. Bodies are read
// and checked by takeBody, and only decoded by huma.
func change[I, O any](a *api, verb access.Verb, pattern, name, summary string, f func(ctx context.Context, input *I) (*O, error), more ...option) {
	o := options{maxBody: smallBody}
	for _, option := range more {
		option(&o)
	}
	method, path, _ := strings.Cut(pattern, " ")
	huma.Register(a.huma, huma.Operation{OperationID: name, Method: method, Path: "/v1" + path, Summary: summary, DefaultStatus: o.status,
		MaxBodyBytes: -1, BodyReadTimeout: -1, SkipValidateBody: true,
		Middlewares: huma.Middlewares{a.mayAnywhere(verb), a.takeBody(o.maxBody)}}, f)
	if o.repeats { // which Register cannot say
		responses := a.huma.OpenAPI().Paths["/v1"+path].Post.Responses
		responses["200"] = &huma.Response{Description: "A repeat", Content: responses["201"].Content}
	}
}

// mayAnywhere refuses callers who have a verb on no canvas.
func (a *api) mayAnywhere(verb access.Verb) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if !callerOf(ctx.Context()).MayAnywhere(verb) {
			a.refuse(ctx, errForbidden(verb))
			return
		}
		next(ctx)
	}
}
