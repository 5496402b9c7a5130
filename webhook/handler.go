package webhook

import (
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

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/intake"
	"eventsv2/internal/logkey"
)

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
	refusals intake.LogLimiter
}

// New makes a Handler that emits to a queue.
func New(queue *eventqueue.Queue, config Config) (*Handler, error) {
	if queue == nil {
		return nil, errors.New("webhook.New: queue must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("webhook.New: %w", err)
	}
	// Either of the two without the other does nothing.
	if (config.Check != nil) != slices.ContainsFunc(config.Sources, func(s Source) bool { return s.RefuseOverLimit }) {
		return nil, errors.New("webhook.New: Check is for sources with RefuseOverLimit: set both, or neither; without them, events over a rate limit are accepted and wait")
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
		log.Info("webhook served", intake.LogField(r, http.StatusOK, time.Since(began)))
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
		log.Warn("webhook refused", status, zap.Error(refused.reason), intake.LogField(r, refused.status, took))
	}, func(lines int) {
		h.config.Logger.Warn("further refusals of webhooks were left out of the log", zap.String("source", source.Name), status,
			zap.Int(logkey.Count, lines), zap.Duration(logkey.Duration, intake.LogWindow))
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
	room := h.intake.Reserve("", intake.SizeOf(r, h.config.MaxBodyBytes), func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
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
		return nil, "", unverified(err)
	}
	if request.Reply != nil {
		return request.Reply, Ignored, nil
	}
	outcome, refused = h.take(r.Context(), source, request, log)
	return nil, outcome, refused
}

// unverified refuses a request by the error of its Verifier.
func unverified(err error) *refusal {
	switch {
	case errors.Is(err, ErrUnavailable):
		return busy(err)
	case errors.Is(err, ErrUnusable):
		return refuse(http.StatusBadRequest, err)
	default:
		return refuse(http.StatusUnauthorized, err)
	}
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
