package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// Config configures a Handler.
type Config struct {
	// Sources are at least one; no two have the same name and canvas.
	Sources []Source

	// MaxBodyBytes is the largest body. Default (0): 256 KiB, the largest value
	// that a queue takes by default.
	MaxBodyBytes int64

	// ReadTimeout is how long a body may take to arrive. Default (0): 10 s. The
	// time for the header is the http.Server's to bound (ReadHeaderTimeout).
	ReadTimeout time.Duration

	// KeepDelivery is how long after the end of its event a delivery is known.
	// Default (0): 72 h, for which most senders try again. At most
	// eventqueue.MaxUniqueFor.
	KeepDelivery time.Duration

	// Check is asked before the events of a genuine request are written. A wait above
	// 0 refuses them with 429 and Retry-After, an error with 503. Default (nil): all
	// are welcome.
	Check func(ctx context.Context, canvas eventqueue.CanvasID) (wait time.Duration, err error)

	// Clock is what time stamps are compared with. Default (nil): time.Now.
	Clock func() time.Time

	// Logger gets a warning for each refusal and a debug line for each delivery.
	// Default (nil): none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 256 << 10
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 10 * time.Second
	}
	if c.KeepDelivery == 0 {
		c.KeepDelivery = 72 * time.Hour
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first field that makes no sense.
func (c Config) Validate() error {
	switch {
	case c.MaxBodyBytes < 0:
		return fmt.Errorf("MaxBodyBytes is %d: it must not be negative", c.MaxBodyBytes)
	case c.ReadTimeout < 0:
		return fmt.Errorf("ReadTimeout is %s: it must not be negative", c.ReadTimeout)
	case c.KeepDelivery < 0 || c.KeepDelivery > eventqueue.MaxUniqueFor:
		return fmt.Errorf("KeepDelivery is %s: it must be from 0 to %s", c.KeepDelivery, eventqueue.MaxUniqueFor)
	case len(c.Sources) == 0:
		return errors.New("Sources is empty: name at least one")
	}
	seen := map[place]bool{}
	for _, s := range c.Sources {
		if err := s.validate(); err != nil {
			return err
		}
		if seen[place{s.Name, s.Canvas}] {
			return fmt.Errorf("source %q is there twice for the same canvas", s.Name)
		}
		seen[place{s.Name, s.Canvas}] = true
	}
	return nil
}

// place is where a source listens. The zero canvas is all of them.
type place struct {
	name   string
	canvas eventqueue.CanvasID
}

// Handler serves POST /webhooks/{canvas}/{source}. It is safe for concurrent use
// and holds nothing.
type Handler struct {
	queue   *eventqueue.Queue
	config  Config
	sources map[place]Source
}

// New makes a Handler that emits to a queue.
func New(queue *eventqueue.Queue, config Config) (*Handler, error) {
	if queue == nil {
		return nil, errors.New("webhook.New: queue must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("webhook.New: %w", err)
	}
	h := &Handler{queue: queue, config: config.withDefaults(), sources: map[place]Source{}}
	for _, s := range config.Sources {
		h.sources[place{s.Name, s.Canvas}] = s
	}
	return h, nil
}

// refusal is an answer that is no 2xx, and why.
type refusal struct {
	status int
	reason error
	wait   time.Duration
}

func refuse(status int, reason error) *refusal { return &refusal{status: status, reason: reason} }

// pathOf reads /webhooks/{canvas}/{source}. A ServeMux would answer for paths that
// are not in their shortest form, with a redirect and no line in the log.
func pathOf(r *http.Request) (canvas, source string) {
	rest, _ := strings.CutPrefix(r.URL.Path, "/webhooks/")
	canvas, source, _ = strings.Cut(rest, "/")
	return canvas, source
}

// short is what the log has of a text that a stranger may have made long.
func short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// ServeHTTP implements http.Handler. It blocks until the events are committed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	canvas, name := pathOf(r)
	log := h.config.Logger.With(zap.String("source", short(name)), zap.String("canvas", short(canvas)), zap.String("remote", r.RemoteAddr))
	reply, refused := h.deliver(w, r, log)
	if refused == nil {
		if reply != nil {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
		}
		_, _ = w.Write(reply) // the sender hung up: it comes again, in vain
		return
	}
	log.Warn("webhook refused", zap.Int("status", refused.status), zap.Error(refused.reason))
	if refused.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refused.wait.Seconds()))))
	}
	w.WriteHeader(refused.status)
}

// deliver takes a request in and returns what to answer.
func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, log *zap.Logger) (reply []byte, refused *refusal) {
	defer func() {
		if value := recover(); value != nil {
			refused = refuse(http.StatusInternalServerError, fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
		}
	}()
	// Also for what is left unread of a request that is refused. A ResponseWriter that
	// knows no deadlines is that of a test.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.config.ReadTimeout))
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, refuse(http.StatusMethodNotAllowed, fmt.Errorf("the method is %s", short(r.Method)))
	}
	source, canvas, err := h.sourceOf(r)
	if err != nil {
		return nil, refuse(http.StatusNotFound, err)
	}
	body, refused := h.read(w, r)
	if refused != nil {
		return nil, refused
	}
	_ = control.SetReadDeadline(time.Time{})
	request := &Request{Canvas: canvas, Source: source.Name, Header: r.Header, Body: body, Received: h.config.Clock()}
	if request.Verified, err = source.Verifier.Verify(request); err != nil {
		return nil, refuse(http.StatusUnauthorized, err)
	}
	if request.Reply != nil {
		return request.Reply, nil
	}
	return nil, h.take(r.Context(), source, request, log)
}

// sourceOf finds the source that a request is for.
func (h *Handler) sourceOf(r *http.Request) (source Source, canvas eventqueue.CanvasID, err error) {
	text, name := pathOf(r)
	if canvas, err = eventqueue.ParseCanvasID(text); err != nil || canvas == (eventqueue.CanvasID{}) {
		return source, canvas, fmt.Errorf("the path %q is not /webhooks/{canvas}/{source} with the uuid of a canvas", short(r.URL.Path))
	}
	source, ok := h.sources[place{name, canvas}]
	if !ok {
		source, ok = h.sources[place{name: name}]
	}
	if !ok {
		return source, canvas, errors.New("there is no such source on this canvas")
	}
	return source, canvas, nil
}

// read reads the body, within its limits of size and time.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, refuse(http.StatusUnsupportedMediaType, fmt.Errorf("Content-Encoding is %q: have the sender send the body as it is", short(encoding)))
	}
	tooLarge := refuse(http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than the limit of %d bytes", h.config.MaxBodyBytes))
	if r.ContentLength > h.config.MaxBodyBytes {
		w.Header().Set("Connection", "close") // nobody reads the rest
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.config.MaxBodyBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, refuse(http.StatusRequestTimeout, fmt.Errorf("the body has not come within %s", h.config.ReadTimeout))
	case err != nil:
		return nil, refuse(http.StatusBadRequest, fmt.Errorf("the body broke off: %w", err))
	}
	return body, nil
}

// emitTimeout bounds the transaction: a sender waits for no longer than that.
const emitTimeout = 20 * time.Second

// take casts a genuine request and emits what comes out.
func (h *Handler) take(ctx context.Context, source Source, r *Request, log *zap.Logger) *refusal {
	events, err := source.Cast(ctx, r)
	switch {
	case errors.Is(err, ErrUnusable):
		return refuse(http.StatusBadRequest, err)
	case err != nil:
		return refuse(http.StatusInternalServerError, fmt.Errorf("cast: %w", err))
	case len(events) == 0:
		log.Debug("webhook ignored", zap.String("type", r.Type))
		return nil
	}
	if h.config.Check != nil {
		switch wait, err := h.config.Check(ctx, r.Canvas); {
		case err != nil:
			return refuse(http.StatusServiceUnavailable, fmt.Errorf("check the canvas: %w", err))
		case wait > 0:
			return &refusal{http.StatusTooManyRequests, fmt.Errorf("the canvas has to wait for %s", wait), wait}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, emitTimeout)
	defer cancel()
	first, err := h.emit(ctx, r, slices.Clone(events))
	var invalid *eventqueue.InvalidError
	switch {
	case errors.As(err, &invalid):
		return refuse(http.StatusUnprocessableEntity, err)
	case err != nil:
		return refuse(http.StatusServiceUnavailable, err)
	}
	log.Debug("webhook accepted", zap.String("type", r.Type), zap.Int("events", len(events)),
		zap.Stringer("first", first.ID), zap.Bool("repeat", !first.New))
	return nil
}

// emit writes the events of one delivery in one transaction, unless it was here
// before. The first event without a key of its own has that of the delivery, is
// written first, and decides for all.
func (h *Handler) emit(ctx context.Context, r *Request, events []eventqueue.NewEvent) (first eventqueue.Emitted, err error) {
	for i := range events {
		events[i].Canvas = r.Canvas
	}
	i := slices.IndexFunc(events, func(e eventqueue.NewEvent) bool { return e.UniqueKey == "" })
	decides := i >= 0 && r.Delivery != ""
	if decides {
		events[i].UniqueKey, events[i].UniqueFor = deliveryKey(r), h.config.KeepDelivery
	}
	if !decides || len(events) == 1 {
		// In one call, which takes all keys in their order: with two, deliveries that have
		// the same keys could wait for each other.
		emitted, err := h.queue.EmitUnique(ctx, events...)
		if err != nil {
			return first, err
		}
		return emitted[0], nil
	}
	err = h.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		emitted, err := tx.EmitUnique(ctx, events[i])
		if err != nil {
			return err
		}
		if first = emitted[0]; !first.New {
			return nil
		}
		_, err = tx.Emit(ctx, slices.Delete(events, i, i+1)...)
		return err
	})
	return first, err
}

// deliveryKey is the unique key of a delivery. An id that is not fit for a key
// stands there as its hash.
func deliveryKey(r *Request) string {
	id := r.Delivery
	if len(id) > 128 || slices.ContainsFunc([]rune(id), func(c rune) bool { return c == unicode.ReplacementChar || unicode.IsControl(c) }) {
		sum := sha256.Sum256([]byte(id))
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	return "webhook " + r.Source + " " + id
}
