package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/intake"
)

//go:embed pages assets
var files embed.FS

// Handler serves a dashboard. It is safe for concurrent use.
type Handler struct {
	http.Handler
	pages *dashboard
}

// Close ends the streams of pages that are looked at, and lets no other begin: call it before the server is shut down,
// which would wait for them. Pages are served as before, and renew themselves no longer.
func (h *Handler) Close() { h.pages.streams.close() }

// New makes the dashboard. It has a goroutine only while a page that renews itself is open.
func New(c Config) (*Handler, error) {
	c.Prefix = strings.TrimRight(c.Prefix, "/")
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Refresh == 0 {
		c.Refresh = defaultRefresh
	}
	if c.ChangesPerSecond == 0 {
		c.ChangesPerSecond = defaultChanges
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	d := &dashboard{Config: c, Reader: inspect.NewIn(c.Store.Schema(), c.Store.Pool()),
		changes: access.NewLimiter(c.ChangesPerSecond, max(1, int(2*c.ChangesPerSecond))), logins: newLoginIntake(), forms: newFormIntake()}
	if c.Access != nil {
		var err error
		if d.sessions, err = access.NewSessions(c.Access.Tokens, c.SessionKey, sessionLasts); err != nil {
			return nil, fmt.Errorf("dashboard: %w", err)
		}
		d.attempts = access.NewAttempts()
	}
	if err := d.parse(); err != nil {
		return nil, err
	}
	assets, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, err
	}
	d.streams = d.newStreams()
	return &Handler{d.routes(assets), d}, nil
}

// indentation in the files of pages is not served.
var indentation = regexp.MustCompile(`(?m)^\t+`)

// parse reads the pages, each with the layout around it.
func (d *dashboard) parse() error {
	d.pages = map[string]*template.Template{}
	text := func(name string) (string, error) {
		file, err := files.ReadFile(name)
		return indentation.ReplaceAllString(string(file), ""), err
	}
	layout, err := text("pages/layout.html")
	if err != nil {
		return err
	}
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "pages/layout.html" {
			continue
		}
		own, err := text(name)
		if err != nil {
			return err
		}
		page, err := template.New("layout.html").Funcs(functions()).Parse(layout)
		if err == nil {
			page, err = page.Parse(own)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		d.pages[strings.TrimSuffix(strings.TrimPrefix(name, "pages/"), ".html")] = page
	}
	return nil
}

func (d *dashboard) routes(assets []fs.DirEntry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", d.page("overview", d.overview))
	mux.HandleFunc("GET /live", d.stream)
	mux.HandleFunc("GET /handlers", d.page("handlers", d.handlers))
	mux.HandleFunc("GET /events", d.page("events", d.eventsPage))
	mux.HandleFunc("GET /events/{id}", d.page("event", d.event))
	mux.HandleFunc("GET /failed", d.page("failed", d.failed))
	mux.HandleFunc("GET /workers", d.page("workers", d.workers))
	mux.HandleFunc("GET /events/{id}/edit", d.page("edit", d.editPage))
	mux.HandleFunc("POST /events/{id}/edit", d.changeOf(maxValueForm, d.editEvent))
	mux.HandleFunc("POST /events/{id}/run", d.change(d.runEvent))
	mux.HandleFunc("POST /events/{id}/cancel", d.change(d.cancelEvent))
	mux.HandleFunc("POST /events/{id}/delete", d.change(d.deleteEvent))
	mux.HandleFunc("POST /events/{id}/retry", d.change(d.retryEvent))
	mux.HandleFunc("GET /handler", d.page("handler", d.handler))
	for _, kind := range operate.RuleKinds() {
		mux.HandleFunc("POST /handler/"+kind.Add, d.change(d.addRule(kind)))
		mux.HandleFunc("POST /handler/"+kind.Lift, d.change(d.liftRule(kind)))
	}
	mux.HandleFunc("GET /groups", d.page("groups", d.groups))
	mux.HandleFunc("POST /limits/rate/set", d.change(d.changeRate(false)))
	mux.HandleFunc("POST /limits/rate/remove", d.change(d.changeRate(true)))
	mux.HandleFunc("POST /limits/concurrency/set", d.change(d.changeConcurrency(false)))
	mux.HandleFunc("POST /limits/concurrency/remove", d.change(d.changeConcurrency(true)))
	mux.HandleFunc("GET /crons", d.page("crons", d.crons))
	mux.HandleFunc("POST /crons/enable", d.change(d.switchCron(true)))
	mux.HandleFunc("POST /crons/disable", d.change(d.switchCron(false)))
	mux.HandleFunc("POST /crons/add", d.change(d.changeCron("set_cron", "It was added, and begins with its next slot.", setCron(false))))
	mux.HandleFunc("POST /crons/edit", d.change(d.changeCron("set_cron", "It was changed. Slots that were due before get no event.", setCron(true))))
	mux.HandleFunc("POST /crons/remove", d.change(d.changeCron("remove_cron", "It was removed, with its records. Events that it has emitted stay.", removeCron)))
	mux.HandleFunc("POST /crons/run", d.change(d.runCron))
	mux.HandleFunc("GET /webhooks", d.page("webhooks", d.webhooks))
	mux.HandleFunc("GET /audit", d.page("audit", d.audit))
	mux.HandleFunc("GET /tokens", d.page("tokens", d.tokens))
	mux.HandleFunc("POST /tokens", d.change(d.makeToken))
	mux.HandleFunc("POST /tokens/{id}/revoke", d.change(d.revokeToken))
	if d.Bulk != nil {
		mux.HandleFunc("POST /failed/retry", d.change(d.changeGroup(operate.VerbRetry)))
		mux.HandleFunc("POST /failed/delete", d.change(d.changeGroup(operate.VerbDeleteEnded)))
		mux.HandleFunc("POST /events/count", d.change(d.countEvents))
		mux.HandleFunc("GET /operations", d.page("operations", d.listOperations))
		mux.HandleFunc("GET /operations/{id}", d.page("operation", d.operation))
		mux.HandleFunc("POST /operations/{id}/confirm", d.change(d.confirmOperation))
		mux.HandleFunc("POST /operations/{id}/stop", d.change(d.stopOperation))
		mux.HandleFunc("POST /operations/{id}/resume", d.change(d.resumeOperation))
	}
	root := http.NewServeMux()
	for _, asset := range assets { // each by its name: no path leads to a folder, or out of this one
		root.Handle("GET /assets/"+asset.Name(), cached(http.FileServerFS(files)))
	}
	if d.sessions != nil {
		root.HandleFunc("GET /login", d.login)
		root.HandleFunc("POST /login", d.loginForm(d.logIn))
		root.HandleFunc("POST /logout", d.loginForm(d.logOut))
	}
	root.Handle("/", d.identified(d.known(mux)))
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(d.otherOrigin))
	protected := origins.Handler(root)
	return http.StripPrefix(d.Prefix, secured(d.readable(withRoot(protected))))
}

// known answers addresses that are of no page.
func (d *dashboard) known(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status, allow := intake.Unrouted(mux, r); status {
		case 0:
			mux.ServeHTTP(w, r)
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", allow)
			d.writeProblem(w, r, "", problem{status, "Nothing was done", "This address is not for requests of this kind (" + r.Method + ")."})
		default:
			d.writeProblem(w, r, "", problem{status, "There is no such page", "The address may be that of an older version, or have been cut off."})
		}
	})
}

// readable refuses an address that the database could not be asked about.
func (d *dashboard) readable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := intake.CheckURL(r); err != nil {
			d.writeProblem(w, r, "", problem{http.StatusBadRequest, "This address cannot be read", clean(err.Error())})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// otherOrigin refuses a change that another page seems to make. Without TLS, browsers tell only where they believe to
// be, and a proxy that does not pass that on is the usual reason.
func (d *dashboard) otherOrigin(w http.ResponseWriter, r *http.Request) {
	d.writeProblem(w, r, "", problem{http.StatusForbidden, "This came from another address", "Nothing was changed. " + access.OtherOrigin(r)})
}

// withRoot serves the bare prefix as the first page.
func withRoot(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" {
			r.URL.Path = "/"
		}
		next.ServeHTTP(w, r)
	})
}

// policy allows what the dashboard itself serves, and nothing inline.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		// With no-referrer, browsers send forms without their origin, and without TLS there is nothing else that tells it.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=300")
		next.ServeHTTP(w, r)
	})
}
