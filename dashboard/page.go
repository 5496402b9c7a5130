package dashboard

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/intake"
)

type dashboard struct {
	Config
	Reader   *inspect.Reader
	sessions *access.Sessions // nil with Identify
	attempts *access.Attempts
	lines    intake.LogLimiter
	changes  *access.Limiter // by viewer
	pages    map[string]*template.Template
	streams  *streams
	// logins are the forms of those who are not let in yet, and forms those of the others.
	logins, forms formIntake
}

// layout is the data of the layout, beside that of the page.
type layout struct {
	Base, Page, Title string
	Now               time.Time
	Who               viewer
	Flash             *flash
	Data              any
	names             *canvasNames
}

// Named is a canvas as the page shows it.
func (l layout) Named(canvas eventqueue.CanvasID) namedCanvas { return l.names.of(canvas) }

// Refreshes reports whether the page is to be read again by and by, without a script: something goes on.
func (l layout) Refreshes() bool {
	data, ok := l.Data.(interface{ Refreshes() bool })
	return ok && data.Refreshes()
}

// Renews is how often the page is read again while it is looked at, in seconds, so that it sends at most 12 statements a
// minute; 0: never. An overview of the last hour has a stream.
func (l layout) Renews() int {
	if data, ok := l.Data.(interface{ Renews() int }); ok {
		return data.Renews()
	}
	switch l.Page {
	case "crons", "workers", "webhooks", "audit", "operations":
		return 20
	case "events":
		return 25
	case "handlers":
		return 50
	case "failed": // may group 100,000 events
		return 60
	case "groups": // says of the first event of each why it does not run
		return 70
	case "event":
		return 80
	default:
		return 0
	}
}

// OfEvents reports whether the page is about what the page Events has selected.
func (l layout) OfEvents() bool {
	data, ok := l.Data.(interface{ OfEvents() bool })
	return ok && data.OfEvents()
}

// ByCanvas reports whether the page is of a canvas that its viewer chooses.
func (l layout) ByCanvas() bool {
	return len(l.Who.Canvases) > 0 && !slices.Contains([]string{"event", "edit", "handler", "tokens", "operation"}, l.Page)
}

// problem is an error page with its status.
type problem struct {
	status     int
	title, say string
}

func (p problem) Error() string { return p.title }

// page serves what read returns in the template of that name.
func (d *dashboard) page(name string, read func(r *http.Request) (title string, data any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
		title, data, err := read(r)
		if err != nil {
			d.writeProblem(w, r, name, err)
			return
		}
		d.write(w, r, http.StatusOK, name, layout{Page: name, Title: title, Data: data, Flash: d.takeFlash(w, r)})
	}
}

// writeProblem serves an error in place of the named page.
func (d *dashboard) writeProblem(w http.ResponseWriter, r *http.Request, name string, err error) {
	status, title, say := d.explainProblem(err, r)
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "1")
	}
	d.write(w, r, status, "problem", layout{Page: name, Title: title, Data: say})
}

// write serves a page in a template.
func (d *dashboard) write(w http.ResponseWriter, r *http.Request, status int, template string, l layout) {
	var b bytes.Buffer
	l.Base, l.Now, l.Who = d.Prefix, time.Now().UTC(), d.viewer(r)
	l.names = namesFor(l.Who)
	err := d.pages[template].Execute(&b, l)
	if err == nil && status < http.StatusInternalServerError && d.readNames(r, l.names) {
		b.Reset()
		err = d.pages[template].Execute(&b, l)
	}
	if err != nil {
		d.Log.Error("write a page of the dashboard", zap.String("page", template), zap.Error(err))
		http.Error(w, "the page could not be written; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(withoutControls(b.Bytes())) // a browser that has left misses nothing
}

func (d *dashboard) explainProblem(err error, r *http.Request) (status int, title, say string) {
	var p problem
	if errors.As(err, &p) {
		return p.status, p.title, p.say
	}
	d.Log.Error("read a page of the dashboard", zap.String("path", r.URL.Path), zap.Error(err))
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusServiceUnavailable, "This takes too long",
			"The database did not answer in time, and the statement was cancelled. Narrow the filter down, for example to a canvas, and try again."
	}
	return http.StatusServiceUnavailable, "The database cannot be read", "The log of this program says why. Reload the page to try again."
}

func badFilter(why string) error {
	return problem{http.StatusBadRequest, "This filter cannot be read", why}
}
