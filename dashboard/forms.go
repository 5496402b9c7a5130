package dashboard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"eventsv2/internal/humantime"
)

const (
	// changeTimeout bounds the statements of a change. A pause waits for the claims that began before it.
	changeTimeout = 30 * time.Second
	// maxFieldBytes bounds what is written in one line of a form.
	maxFieldBytes = 1024
)

// flash is the message of the next page about a change.
type flash struct {
	Done bool
	Text string
}

// done says that a change was made, and refused that it was not.
func done(say string) flash    { return flash{true, say} }
func refused(say string) flash { return flash{false, say} }

const (
	flashLasts = time.Minute
	maxFlash   = 1024
)

// setFlash keeps what the next page says in a cookie.
func (d *dashboard) setFlash(w http.ResponseWriter, r *http.Request, f flash) {
	kind := "-"
	if f.Done {
		kind = "+"
	}
	say, _ := shorten(f.Text, maxFlash)
	d.setCookie(w, r, flashCookie, base64.RawURLEncoding.EncodeToString([]byte(kind+say)), flashLasts)
}

// takeFlash returns what a page says about the change before it, once.
func (d *dashboard) takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	if r.Method != http.MethodGet {
		return nil
	}
	d.removeCookie(w, r, flashCookie)
	text, err := base64.RawURLEncoding.DecodeString(d.cookieOf(r, flashCookie))
	if err != nil || len(text) < 2 || len(text) > maxFlash+1 {
		return nil
	}
	return &flash{Done: text[0] == '+', Text: clean(string(text[1:]))}
}

// shown is the answer to a form that leads nowhere else: the form again, with a mistake, or what is shown once.
type shown struct {
	status      int
	page, title string
	data        any
}

func (s shown) Error() string { return s.title }

// mistake is what was wrong in a form, which the page at the path says.
type mistake struct {
	path string
	error
}

// mistaken is a form with a mistake, as the page that has it shows it again.
func mistaken(page, title string, data any) shown {
	return shown{http.StatusUnprocessableEntity, page, title, data}
}

// change serves a form. What was changed, or why nothing was, is said by the page that do returns, to which the
// browser is led.
func (d *dashboard) change(do formAction) http.HandlerFunc { return d.changeOf(maxForm, do) }

// formAction makes a change: it returns the page that says so, or why nothing was changed.
type formAction func(r *http.Request) (path string, said flash, err error)

// changeOf is change for a form of at most a number of bytes.
func (d *dashboard) changeOf(most int64, do formAction) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		if d.Queue == nil {
			d.writeProblem(w, r, "", readOnly())
			return
		}
		sender := viewerOf(r).key()
		if d.limited(w, r, sender) {
			return
		}
		free, err := d.forms.read(w, r, sender, most)
		if err != nil {
			d.writeProblem(w, r, "", err)
			return
		}
		defer free()
		path, said, err := do(r)
		var form shown
		var known problem
		var wrong mistake
		if errors.As(err, &wrong) {
			path, said, err = wrong.path, refused("Nothing was changed: "+clean(wrong.Error())+"."), nil
		}
		switch {
		case errors.As(err, &form):
			d.write(w, r, form.status, form.page, layout{Page: form.page, Title: form.title, Data: form.data})
		case errors.As(err, &known):
			d.writeProblem(w, r, "", err)
		case err != nil:
			d.Log.Error("a change by the dashboard failed", zap.String("path", r.URL.Path), zap.Error(err))
			d.writeProblem(w, r, "", problem{http.StatusServiceUnavailable, "The change failed", "It may have been made in part or as a whole. The log of this program says why. Look before you try again; that does no harm."})
		default:
			if said.Text != "" {
				d.setFlash(w, r, said)
			}
			http.Redirect(w, r, d.Prefix+path, http.StatusSeeOther)
		}
	}
}

// limited reports whether the user has made too many changes, and refuses this one then.
func (d *dashboard) limited(w http.ResponseWriter, r *http.Request, key string) bool {
	wait := d.changes.Take(key)
	if wait <= 0 {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	d.writeProblem(w, r, "", problem{http.StatusTooManyRequests, "Too many changes at once", "Nothing was changed. Wait a moment, and try again. For many events there are bulk operations."})
	return true
}

func readOnly() problem {
	return problem{http.StatusForbidden, "You may not do this", "This dashboard only shows the queue."}
}

// field returns one line of a form.
func field(r *http.Request, name string) (string, error) {
	text := strings.TrimSpace(r.PostFormValue(name))
	if !isField(text) {
		return "", problem{http.StatusBadRequest, "This form cannot be read", "The field " + name + " is a text of at most 1,024 bytes of UTF-8."}
	}
	return text, nil
}

// isField reports whether a text is one line of a form, or of a filter in an address.
func isField(text string) bool {
	return len(text) <= maxFieldBytes && !strings.ContainsRune(text, 0) && utf8.ValidString(text)
}

// readTime reads a field for a time, as parse does. The zone is that of the viewer, as their browser has named it; "" is
// UTC, as without a script.
func readTime(r *http.Request, text string, parse func(string, *time.Location) (humantime.Moment, error)) (time.Time, error) {
	zone := r.PostFormValue("zone")
	in, err := time.LoadLocation(zone)
	if err != nil || len(zone) > maxZoneBytes {
		return time.Time{}, fmt.Errorf("%q is no time zone that this program knows: write a duration, such as 90m", line(zone))
	}
	m, err := parse(strings.TrimSpace(text), in)
	return m.After(time.Now()), err
}

// maxZoneBytes is longer than the name of any time zone.
const maxZoneBytes = 64

// numberOf returns the number that a text is, and 0 for a text that is none.
func numberOf(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}
