package dashboard

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/logkey"
)

const (
	// sessionLasts is the lifetime of a session.
	sessionLasts = 12 * time.Hour
	// canvasesOffered bounds the choice of canvases for a user who may not read all of them.
	canvasesOffered = 200
	// maxNext is how long a path may be to which a login leads: as a field of its form it is up to three times as long.
	maxNext = 1 << 10
)

// viewer is the user of a request.
type viewer struct {
	access.Identity
	// Session reports whether they came in by logging in, and can log out.
	Session bool
	// Canvas is the one that they have chosen of Canvases, which are those that they may read; both are empty
	// for a user who may read all canvases, and for a user who may read one.
	Canvas   eventqueue.CanvasID
	Canvases []eventqueue.CanvasID
	// asked is the canvas that the address names, nil if it names none, and askedErr why it could not be found.
	asked    *namedCanvas
	askedErr error
	// Changes reports whether the dashboard can change something.
	Changes bool
	address string
}

type viewerKey struct{}

func viewerOf(r *http.Request) viewer {
	who, _ := r.Context().Value(viewerKey{}).(viewer)
	return who
}

func (d *dashboard) viewer(r *http.Request) viewer {
	who := viewerOf(r)
	who.Changes = d.Queue != nil
	return who
}

// actor is the viewer as the audit log names them.
func (v viewer) actor() audit.Actor {
	return v.Actor(v.address, "dashboard")
}

// key is the same for all requests of the viewer.
func (v viewer) key() string { return cmp.Or(v.Key, v.Name) }

// Query keeps the chosen canvas in a link to another page.
func (v viewer) Query() template.URL {
	if len(v.Canvases) == 0 {
		return ""
	}
	return template.URL("?canvas=" + v.Canvas.String()) //nolint:gosec // hexadecimal digits and hyphens
}

// MayAdministerTokens reports whether there may be tokens that the viewer sees.
func (v viewer) MayAdministerTokens() bool { return v.MayAnywhere(access.Administer) }

// MayReadAll reports whether the viewer may see what belongs to no canvas.
func (v viewer) MayReadAll() bool { return v.MayEverywhere(access.Read) }

// mayOn reports whether the viewer has a verb on a canvas; nil is all of them.
func (v viewer) mayOn(verb access.Verb, canvas *eventqueue.CanvasID) bool {
	if canvas == nil {
		return v.MayEverywhere(verb)
	}
	return v.May(verb, *canvas)
}

// mayChange reports whether the viewer has a verb on a canvas, and the dashboard can change something.
func (d *dashboard) mayChange(r *http.Request, verb access.Verb, canvas eventqueue.CanvasID) bool {
	return d.Queue != nil && viewerOf(r).May(verb, canvas)
}

// mayChangeOn is mayChange for a canvas or, with nil, for all.
func (d *dashboard) mayChangeOn(r *http.Request, verb access.Verb, canvas *eventqueue.CanvasID) bool {
	return d.Queue != nil && viewerOf(r).mayOn(verb, canvas)
}

// canvasText is the canvas of a filter as a form has it: as the address names it, or the only one of its viewer; "" for all.
func canvasText(r *http.Request, canvas *eventqueue.CanvasID) string {
	if text := strings.TrimSpace(r.URL.Query().Get("canvas")); text != "" || canvas == nil {
		return text
	}
	return canvas.String()
}

// identified lets in who may read something, and leads others to the page for logging in.
func (d *dashboard) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := d.identify(r)
		switch {
		case errors.Is(err, access.ErrNoCredentials) && d.sessions != nil:
			d.removeCookie(w, r, sessionCookie)
			d.toLogin(w, r)
		case errors.Is(err, access.ErrNoCredentials), errors.Is(err, access.ErrRefused):
			d.writeProblem(w, r, "", problem{http.StatusUnauthorized, "You may not come in", "It is not known who you are, or you have no rights here."})
		case errors.Is(err, tooMany):
			d.writeProblem(w, r, "", tooMany)
		case err != nil:
			const failed = "could not find out who makes a request of the dashboard"
			if !errors.Is(err, context.Canceled) {
				d.lines.Write(failed, func() { d.Log.Error(failed, zap.Error(err)) }, func(n int) { d.Log.Error(failed+"; further entries were left out", zap.Int(logkey.Count, n)) })
			}
			why := "The log of this program says why. Reload the page to try again."
			if errors.Is(err, context.DeadlineExceeded) {
				why = "The database does not answer. Reload the page to try again."
			}
			d.writeProblem(w, r, "", problem{http.StatusServiceUnavailable, "It could not be found out who you are", why})
		case !who.MayAnywhere(access.Read):
			d.writeProblem(w, r, "", forbidden(access.Read))
		default:
			if text := strings.TrimSpace(r.URL.Query().Get("canvas")); text != "" {
				canvas, err := d.canvasOf(r.Context(), who, text)
				who.asked, who.askedErr = &canvas, err
			}
			who.choose()
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), viewerKey{}, who)))
		}
	})
}

// tooMany is the answer to an address that has tried credentials too often without success.
var tooMany = problem{http.StatusTooManyRequests, "Too many attempts", "Too many attempts have failed. Wait a moment, and try again."}

// identify returns who makes a request: as the application says, by a header, or by a session. It takes no
// longer than the statements of a page may.
func (d *dashboard) identify(r *http.Request) (who viewer, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	r = r.WithContext(ctx)
	who.address = access.AddressOf(r)
	if d.Identify != nil {
		who.Identity, err = d.Identify(r)
		return who, err
	}
	credentials := access.CredentialsOf(r)
	if d.attempts.Wait(who.address, credentials) > 0 && r.Header.Get("Authorization") != "" {
		return who, tooMany
	}
	who.Identity, err = d.Access.Authenticate(r)
	switch {
	case err == nil:
		d.attempts.Accepted(credentials)
		return who, nil
	case errors.Is(err, access.ErrRefused):
		d.attempts.Refused(who.address, credentials)
		return who, err
	case !errors.Is(err, access.ErrNoCredentials):
		return who, err
	}
	session := d.cookieOf(r, sessionCookie)
	if session == "" {
		return who, err
	}
	who.Session = true
	if who.Identity, err = d.sessions.Identify(r.Context(), session); errors.Is(err, access.ErrRefused) {
		err = access.ErrNoCredentials // it has ended: another one can be begun
	}
	return who, err
}

// choose notes the canvases of a user who may not read all, if there are several, and the one that a
// request is about.
func (v *viewer) choose() {
	canvases := v.Identity.Canvases(access.Read)
	if len(canvases) < 2 {
		return
	}
	v.Canvases, v.Canvas = canvases[:min(len(canvases), canvasesOffered)], canvases[0]
	if v.asked != nil && v.askedErr == nil && v.May(access.Read, v.asked.Canvas) {
		v.Canvas = v.asked.Canvas
	}
}

// filter selects what a request is about and its viewer may read: the canvas that the address names; without one,
// all canvases, or the first one of a user who may not read all.
func (d *dashboard) filter(r *http.Request) (f inspect.Filter, err error) {
	who := viewerOf(r)
	if who.asked != nil {
		if _, unknown := errors.AsType[unknownCanvas](who.askedErr); unknown {
			return f, badFilter("The canvas is not a UUID, and no canvas that you may read has this name. Copy it from an event or a handler.")
		}
		if who.askedErr != nil {
			return f, who.askedErr
		}
		if !who.May(access.Read, who.asked.Canvas) {
			return f, forbidden(access.Read)
		}
		f.Canvas = &who.asked.Canvas
		return f, nil
	}
	if canvases := who.Identity.Canvases(access.Read); canvases != nil {
		f.Canvas = &canvases[0] // who may read no canvas is not let in
	}
	return f, nil
}

func forbidden(verb access.Verb) problem {
	return problem{http.StatusForbidden, "You may not do this", "You lack the verb " + string(verb) + " here. Who administers the queue can give it to you."}
}

// toLogin leads to the page for logging in, and back again.
func (d *dashboard) toLogin(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		d.writeProblem(w, r, "", problem{http.StatusUnauthorized, "You are no longer logged in", "Nothing was changed. Go back, log in in another tab, and try again."})
		return
	}
	to := d.Prefix + "/login"
	if next := r.URL.RequestURI(); next != "/" {
		to += "?" + url.Values{"next": {next}}.Encode()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// loginData is the page for logging in.
type loginData struct{ Next, Problem string }

func (d *dashboard) login(w http.ResponseWriter, r *http.Request) {
	data := loginData{Next: localPath(r.URL.Query().Get("next"))}
	if name := d.cookieName(r, sessionCookie); len(r.CookiesNamed(name)) > 1 {
		data.Problem = "Your browser sends several cookies named " + name + ", of which another page may have set one: none of them counts. Delete the cookies of this address, and log in."
	}
	d.write(w, r, http.StatusOK, "login", layout{Title: "Log in", Data: data})
}

// localPath is a path below the prefix, to which a link may lead after logging in.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsRune(next, '\\') || len(next) > maxNext {
		return "/"
	}
	return next
}

// logIn begins a session for a token.
func (d *dashboard) logIn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.PostFormValue("next"))
	refuse := func(status int, say string) {
		d.write(w, r, status, "login", layout{Title: "Log in", Data: loginData{Next: next, Problem: say}})
	}
	address, token := access.AddressOf(r), strings.TrimSpace(r.PostFormValue("token"))
	if d.attempts.Wait(address, token) > 0 {
		refuse(http.StatusTooManyRequests, tooMany.say)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	session, who, err := d.sessions.Begin(ctx, token)
	switch {
	case errors.Is(err, access.ErrRefused):
		d.attempts.Refused(address, token)
		refuse(http.StatusUnauthorized, "This token is not valid: it is unknown, has expired, or was revoked.")
	case err != nil:
		d.Log.Error("log in to the dashboard", zap.Error(err))
		refuse(http.StatusServiceUnavailable, "The database could not be read. The log of this program says why.")
	case !who.MayAnywhere(access.Read):
		refuse(http.StatusForbidden, "This token may not read anything: make one with the verb read.")
	default:
		d.attempts.Accepted(token)
		d.setCookie(w, r, sessionCookie, session, sessionLasts)
		http.Redirect(w, r, d.Prefix+next, http.StatusSeeOther)
	}
}

// logOut ends a session, in every program that would accept it. The browser forgets it whether that works or not: the next
// user of a shared machine must not be logged in. It is limited by session, so that another holder of the token cannot prevent a
// log-out.
func (d *dashboard) logOut(w http.ResponseWriter, r *http.Request) {
	session := d.cookieOf(r, sessionCookie)
	d.removeCookie(w, r, sessionCookie)
	if lasts := d.sessions.Lasts(session); lasts > 0 {
		key := d.sessions.Key(session)
		d.streams.endAll(func(s *stream) bool { return s.session == key })
		if d.limited(w, r, key) {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
		defer cancel()
		if err := d.sessions.End(ctx, session); err != nil {
			d.Log.Error("log out of the dashboard", zap.Error(err))
			d.writeProblem(w, r, "", problem{http.StatusServiceUnavailable, "You are logged out of this browser only",
				"The session could not be ended in the database: the log of this program says why. Whoever has kept its cookie is let in until " + exact(time.Now().Add(lasts)) + ", when it ends by itself, or until its token is revoked."})
			return
		}
	}
	http.Redirect(w, r, d.Prefix+"/login", http.StatusSeeOther)
}
