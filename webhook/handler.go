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
	"eventsv2/internal/httprequest"
	"eventsv2/internal/intake"
	"eventsv2/internal/logkey"
	"eventsv2/internal/lograte"
)

const (
	// defaultBufferedBytes is the memory that all requests may take together, unless
	// single bodies may be so large that only a few would have room.
	defaultBufferedBytes = 16 << 20
	leastBodies          = 8
)

// Config configures a Handler.
type Config struct {
	// Sources has at least one source; no two have the same name and canvas.
	Sources []Source

	// MaxBodyBytes is the largest body. Default (0): 256 KiB, the largest value
	// that a queue takes by default.
	MaxBodyBytes int64

	// MaxBufferedBytes is about the memory that all current requests may take together.
	// If it is used up when another request arrives, the body whose reading began first
	// is cut off with 503; if all bodies have been read, the new request is refused.
	// Default (0): 16 MiB, or eight times MaxBodyBytes if that is more. It must have room
	// for one body.
	MaxBufferedBytes int64

	// ReadTimeout is how long a body may take to arrive. Default (0): 10 s. The
	// http.Server bounds the time for the header (ReadHeaderTimeout).
	ReadTimeout time.Duration

	// RetainDelivery is how long after the end of its event a repeat of a delivery is
	// recognised. Default (0): 72 h, since most senders do not try again for longer. At
	// most eventqueue.MaxUniqueFor.
	RetainDelivery time.Duration

	// Check is called before the events of a genuine request are written, if its source has RefuseOverLimit. A wait
	// above 0 refuses them with 429 and Retry-After, an error with 503. Default (nil): all are accepted.
	Check func(ctx context.Context, canvas eventqueue.CanvasID) (wait time.Duration, err error)

	// Observe is called for each request to a source, after its answer is decided. refused says why it was refused,
	// without secrets; nil: it was not. Observe must not block, and is called concurrently. Default (nil): nothing is.
	Observe func(source Source, outcome Outcome, refused error)

	// Clock is the clock that time stamps are compared with. Default (nil): time.Now.
	Clock func() time.Time

	// Logger gets a warning for each refusal, an info line for each other request, and debug lines. Of the refusals of
	// one source with one status it gets 20 within 10 s, and how many it did not get.
	// Default (nil): none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 256 << 10
	}
	if c.MaxBufferedBytes == 0 {
		c.MaxBufferedBytes = max(defaultBufferedBytes, leastBodies*c.MaxBodyBytes)
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 10 * time.Second
	}
	if c.RetainDelivery == 0 {
		c.RetainDelivery = 72 * time.Hour
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	switch {
	case c.MaxBodyBytes < 0:
		return fmt.Errorf("MaxBodyBytes is %d: it must not be negative", c.MaxBodyBytes)
	case c.MaxBufferedBytes < 0:
		return fmt.Errorf("MaxBufferedBytes is %d: it must not be negative", c.MaxBufferedBytes)
	case c.MaxBufferedBytes > 0 && c.MaxBufferedBytes < c.withDefaults().MaxBodyBytes+2*intake.RequestBytes:
		return fmt.Errorf("MaxBufferedBytes is %d: it must be at least %d, to have room for one body of MaxBodyBytes",
			c.MaxBufferedBytes, c.withDefaults().MaxBodyBytes+2*intake.RequestBytes)
	case c.ReadTimeout < 0:
		return fmt.Errorf("ReadTimeout is %s: it must not be negative", c.ReadTimeout)
	case c.RetainDelivery < 0 || c.RetainDelivery > eventqueue.MaxUniqueFor:
		return fmt.Errorf("RetainDelivery is %s: it must be from 0 to %s", c.RetainDelivery, eventqueue.MaxUniqueFor)
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

// place is the path of a source. The zero canvas means all canvases.
type place struct {
	name   string
	canvas eventqueue.CanvasID
}

// Handler serves POST /webhooks/{canvas}/{source}. It is safe for concurrent use.
type Handler struct {
	queue   *eventqueue.Queue
	config  Config
	sources map[place]Source
	intake  *intake.Intake
	// refusals bounds the lines about refused requests.
	refusals lograte.Lines
}

// New makes a Handler that emits to a queue.
func New(queue *eventqueue.Queue, config Config) (*Handler, error) {
	if queue == nil {
		return nil, errors.New("webhook.New: queue must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("webhook.New: %w", err)
	}
	config = config.withDefaults()
	h := &Handler{queue: queue, config: config, sources: map[place]Source{}, intake: intake.New(config.MaxBufferedBytes)}
	for _, s := range config.Sources {
		h.sources[place{s.Name, s.Canvas}] = s
	}
	return h, nil
}

// leftoverTimeout is how long the rest of a refused body may take to arrive.
const leftoverTimeout = time.Second

// pathOf reads /webhooks/{canvas}/{source}. A ServeMux would redirect paths that are
// not in their shortest form, without a line in the log.
func pathOf(r *http.Request) (canvas, source string) {
	rest, _ := strings.CutPrefix(r.URL.Path, "/webhooks/")
	canvas, source, _ = strings.Cut(rest, "/")
	return canvas, source
}

// short shortens a text from an unknown sender for the log.
func short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// ServeHTTP implements http.Handler. It blocks until the events are committed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	canvas, name := pathOf(r)
	log := h.config.Logger.With(zap.String("source", short(name)), zap.String("canvas", short(canvas)), zap.String("remote", r.RemoteAddr))
	reply, outcome, refused := h.deliver(w, r, log)
	h.observe(r, outcome, refused)
	if refused == nil {
		log.Info("webhook served", httprequest.Field(r, http.StatusOK, time.Since(began)))
		if reply != nil {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
		}
		_, _ = w.Write(reply) // the sender closed the connection; if it repeats the delivery, that has no effect
		return
	}
	if refused.unread {
		w.Header().Set("Connection", "close")
		// The server itself reads the rest, so that the sender sees the answer.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(leftoverTimeout))
	}
	h.logRefusal(r, log, refused, time.Since(began))
	if refused.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refused.wait.Seconds()))))
	}
	w.WriteHeader(refused.status)
}

// logRefusal writes a line, unless there are many for the same reason: anybody can cause them.
func (h *Handler) logRefusal(r *http.Request, log *zap.Logger, refused *refusal, took time.Duration) {
	source, _, _ := h.sourceOf(r) // of none, names that the sender chooses must not make kinds of lines
	status := zap.Int("status", refused.status)
	h.refusals.Write(fmt.Sprint(source.Name, source.Canvas, refused.status), func() {
		log.Warn("webhook refused", status, zap.Error(refused.reason), httprequest.Field(r, refused.status, took))
	}, func(lines int) {
		h.config.Logger.Warn("further refusals of webhooks were left out of the log", zap.String("source", source.Name), status,
			zap.Int(logkey.Count, lines), zap.Duration(logkey.Duration, lograte.Within))
	})
}

// deliver processes a request and returns the answer.
func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, log *zap.Logger) (reply []byte, outcome Outcome, refused *refusal) {
	whole := r.ContentLength == 0
	defer func() {
		if value := recover(); value != nil {
			refused = refuse(http.StatusInternalServerError, fmt.Errorf("panic: %v\n%s", value, debug.Stack()))
		}
		if refused != nil {
			refused.unread = !whole
		}
	}()
	// The deadline also bounds the unread rest of a refused request. Only the
	// ResponseWriter of a test has no deadlines.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.config.ReadTimeout))
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, "", refuse(http.StatusMethodNotAllowed, fmt.Errorf("the method is %s", short(r.Method)))
	}
	source, canvas, err := h.sourceOf(r)
	if err != nil {
		return nil, "", refuse(http.StatusNotFound, err)
	}
	if refused := h.unwelcome(r); refused != nil {
		return nil, "", refused
	}
	room := h.intake.Reserve(intake.SizeOf(r, h.config.MaxBodyBytes), func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	if room == nil {
		return nil, "", busy(fmt.Errorf("the requests in hand take all of the %d bytes that they may", h.config.MaxBufferedBytes))
	}
	defer room.Free()
	body, refused := h.read(w, r)
	if !room.StopReading() {
		return nil, "", busy(errors.New("the body was cut off: it had been on its way the longest, and others had no room"))
	}
	if refused != nil {
		return nil, "", refused
	}
	whole = true
	_ = control.SetReadDeadline(time.Time{})
	request := &Request{Canvas: canvas, Source: source.Name, Header: r.Header, Body: body, Received: h.config.Clock()}
	if request.Verified, err = source.Verifier.Verify(request); err != nil {
		return nil, "", refuse(http.StatusUnauthorized, err)
	}
	if request.Reply != nil {
		return request.Reply, Ignored, nil
	}
	outcome, refused = h.take(r.Context(), source, request, log)
	return nil, outcome, refused
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

// unwelcome refuses requests whose bodies need not be read.
func (h *Handler) unwelcome(r *http.Request) *refusal {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return refuse(http.StatusUnsupportedMediaType, fmt.Errorf("Content-Encoding is %q: have the sender send the body as it is", short(encoding)))
	}
	if r.ContentLength > h.config.MaxBodyBytes {
		return h.tooLarge()
	}
	return nil
}

func (h *Handler) tooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than the limit of %d bytes", h.config.MaxBodyBytes))
}

// read reads the body, within its limits of size and time.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (body []byte, refused *refusal) {
	var err error
	if r.ContentLength >= 0 {
		// The buffer has the announced length, for which memory is reserved: to grow it
		// would take twice as much.
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, h.config.MaxBodyBytes))
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, h.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, fmt.Errorf("the body has not come within %s", h.config.ReadTimeout))
	case err != nil:
		return nil, refuse(http.StatusBadRequest, fmt.Errorf("the body broke off: %w", err))
	}
	return body, nil
}

// emitTimeout bounds the transaction: senders do not wait longer.
const emitTimeout = 20 * time.Second

// take casts a genuine request and emits its events.
func (h *Handler) take(ctx context.Context, source Source, r *Request, log *zap.Logger) (Outcome, *refusal) {
	events, err := source.Cast(ctx, r)
	switch {
	case errors.Is(err, ErrUnusable):
		return "", refuse(http.StatusBadRequest, err)
	case err != nil:
		return "", refuse(http.StatusInternalServerError, fmt.Errorf("cast: %w", err))
	case len(events) == 0:
		log.Debug("webhook ignored", zap.String("type", r.Type))
		return Ignored, nil
	}
	if h.config.Check != nil && source.RefuseOverLimit {
		switch wait, err := h.config.Check(ctx, r.Canvas); {
		case err != nil:
			return "", refuse(http.StatusServiceUnavailable, fmt.Errorf("check the canvas: %w", err))
		case wait > 0:
			return "", &refusal{status: http.StatusTooManyRequests, reason: fmt.Errorf("the canvas has to wait for %s", wait), wait: wait}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, emitTimeout)
	defer cancel()
	first, err := h.emit(ctx, r, slices.Clone(events))
	var invalid *eventqueue.InvalidError
	switch {
	case errors.As(err, &invalid):
		return "", refuse(http.StatusUnprocessableEntity, err)
	case err != nil:
		return "", refuse(http.StatusServiceUnavailable, err)
	}
	log.Debug("webhook accepted", zap.String("type", r.Type), zap.Int("events", len(events)),
		zap.Stringer("first", first.ID), zap.Bool("repeat", !first.New))
	if !first.New {
		return Duplicate, nil
	}
	return Accepted, nil
}

// emit writes the events of one delivery in one transaction, unless the delivery is a
// repeat. The first event without a key of its own gets the key of the delivery, is
// written first, and decides for all.
func (h *Handler) emit(ctx context.Context, r *Request, events []eventqueue.NewEvent) (first eventqueue.Emitted, err error) {
	for i := range events {
		events[i].Canvas = r.Canvas
	}
	i := slices.IndexFunc(events, func(e eventqueue.NewEvent) bool { return e.UniqueKey == "" })
	decides := i >= 0 && r.Delivery != ""
	if decides {
		events[i].UniqueKey, events[i].UniqueFor = deliveryKey(r), h.config.RetainDelivery
	}
	if !decides || len(events) == 1 {
		// One call takes all keys in their order. With two calls, deliveries that have the
		// same keys could deadlock.
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

// deliveryKey is the unique key of a delivery. For an id that cannot be a key it has
// the hash of the id.
func deliveryKey(r *Request) string {
	id := r.Delivery
	if len(id) > 128 || slices.ContainsFunc([]rune(id), func(c rune) bool { return c == unicode.ReplacementChar || unicode.IsControl(c) }) {
		sum := sha256.Sum256([]byte(id))
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	return "webhook " + r.Source + " " + id
}
