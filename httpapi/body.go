package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"eventsv2/internal/intake"
)

const (
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = 10 * time.Second
	// leftoverTimeout is how long the rest of a refused body may take to arrive, which has at most leftoverBytes.
	leftoverTimeout = time.Second
	leftoverBytes   = 2 * largeBody
	// copiesOfBody is how often the memory has a body at once: read, decoded, and in a statement.
	copiesOfBody = 3
)

// leftover is a body of which something may be left when it is refused.
type leftover struct {
	io.ReadCloser
	ended bool
}

// Read implements io.Reader.
func (l *leftover) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.ended = l.ended || err == io.EOF
	return n, err
}

// discard reads the rest of a body, and keeps nothing of it: most clients read the answer only when they have sent all, and
// see a broken connection instead if the server ends it before.
func (l *leftover) discard(w http.ResponseWriter) {
	if !l.ended {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(leftoverTimeout))
		_, _ = io.CopyN(io.Discard, l.ReadCloser, leftoverBytes)
	}
}

// takeBody is a middleware that reads the bodies of an operation, checks them against its schema, and hands them on.
func (a *api) takeBody(most int64) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if ctx.Operation().RequestBody == nil || r.ContentLength == 0 {
			next(ctx)
			return
		}
		b := &body{in: a.intake, turns: &a.turns, of: callerOf(ctx.Context()).Key, r: r, control: http.NewResponseController(w)}
		defer b.free()
		if err := b.read(ctx.Context(), most); err != nil {
			if errors.Is(err, errBusy) {
				ctx.SetHeader("Retry-After", "1")
			}
			a.refuse(ctx, err)
			return
		}
		_ = b.control.SetReadDeadline(time.Time{})
		if err := a.huma.Unmarshal(r.Header.Get("Content-Type"), []byte("null"), new(any)); errors.Is(err, huma.ErrUnknownContentType) {
			a.refuse(ctx, huma.Error415UnsupportedMediaType("the body has to be JSON: send Content-Type: application/json"))
			return
		}
		if status, errs := a.checkBody(ctx, b.bytes); len(errs) > 0 {
			_ = huma.WriteErr(a.huma, ctx, status, "validation failed", errs...)
			return
		}
		r.Body = io.NopCloser(b)
		next(ctx)
	}
}

// checkBody returns the errors of a body, and the status that they make.
func (a *api) checkBody(ctx huma.Context, text []byte) (status int, errs []error) {
	if len(text) == 0 { // huma knows whether there has to be one
		return 0, nil
	}
	if !utf8.Valid(text) {
		return http.StatusBadRequest, []error{&huma.ErrorDetail{Location: "body", Message: "the body is not UTF-8"}}
	}
	if !json.Valid(text) {
		err := json.Unmarshal(text, new(struct{})) // it checks the syntax first
		return http.StatusBadRequest, []error{&huma.ErrorDetail{Location: "body", Message: fmt.Sprintf("the body is not JSON: %v", err)}}
	}
	schema := ctx.Operation().RequestBody.Content["application/json"].Schema
	return http.StatusUnprocessableEntity, check(a.huma.OpenAPI().Components.Schemas, schema, text)
}

// body is the body of a request, with the memory that is reserved for it.
type body struct {
	in      *intake.Intake
	turns   *turns
	of      string // the key of its sender
	r       *http.Request
	control *http.ResponseController
	room    *intake.Reservation
	endTurn func() // nil: it has none
	bytes   []byte
}

// Errors of bodies that are not read.
var (
	errBusy   = huma.Error503ServiceUnavailable("the server has too many requests in hand: try again")
	errSlow   = huma.Error408RequestTimeout(fmt.Sprintf("the body has not come within %s", bodyTimeout))
	errBroken = huma.Error400BadRequest("the body broke off")
)

func errTooLarge(most int64) huma.StatusError {
	return huma.Error413RequestEntityTooLarge(fmt.Sprintf("the body is larger than the limit of %d bytes", most))
}

// read reads a body of at most a number of bytes. Most bodies are small: they find room at once. A larger one is read on when
// it is its turn. While it waits, it may be cut off as while it is read.
func (b *body) read(ctx context.Context, most int64) huma.StatusError {
	if length := b.r.ContentLength; length > most {
		return errTooLarge(most)
	} else if length >= 0 {
		most = length
	}
	waiting, cutOff := context.WithCancel(ctx)
	defer cutOff()
	err := b.readWithin(min(most, smallBody), cutOff)
	if err == nil || err.GetStatus() != http.StatusRequestEntityTooLarge || most <= smallBody {
		return err
	}
	end, ok := b.turns.take(waiting, b.of, copiesOfBody*most)
	if !ok {
		return errBusy
	}
	b.endTurn = end
	return b.readWithin(most, cutOff)
}

// readWithin reserves memory for a number of bytes, and reads on until the body ends or is longer. One that is longer may
// still be cut off: then cutOff is called.
func (b *body) readWithin(most int64, cutOff func()) huma.StatusError {
	if b.room != nil {
		if !b.room.StopReading() {
			return errBusy
		}
		b.room.Free()
	}
	_ = b.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	around := intake.SizeOf(b.r, 0) - max(b.r.ContentLength, 0)
	b.room = b.in.Reserve(b.of, around+copiesOfBody*most, func() {
		cutOff()
		_ = b.control.SetReadDeadline(time.Unix(1, 0))
	})
	if b.room == nil {
		return errBusy
	}
	had := int64(len(b.bytes))
	// One byte more shows that the body is longer, and bytes.MinRead more that it ends.
	grown := bytes.NewBuffer(append(make([]byte, 0, most+1+bytes.MinRead), b.bytes...))
	_, err := grown.ReadFrom(io.LimitReader(b.r.Body, most+1-had))
	b.bytes = grown.Bytes()
	switch {
	case err == nil && int64(len(b.bytes)) > most:
		return errTooLarge(most)
	case !b.room.StopReading():
		return errBusy
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	case err != nil:
		return errBroken
	}
	return nil
}

// free frees the memory, and ends the turn.
func (b *body) free() {
	if b.room != nil {
		b.room.Free()
	}
	if b.endTurn != nil {
		b.endTurn()
	}
}

// WriteTo hands the body on, once.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.bytes)
	b.bytes = nil // so that it can be freed
	return int64(n), err
}

// Read implements io.Reader, for io.NopCloser.
func (b *body) Read(p []byte) (int, error) {
	n := copy(p, b.bytes)
	if b.bytes = b.bytes[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
