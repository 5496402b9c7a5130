package dashboard

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"eventsv2/internal/intake"
)

// What a form may send.
const (
	maxLoginForm = 4 << 10
	maxForm      = 64 << 10
	// maxValueForm is for a form with a value of an event.
	maxValueForm = 4 << 20
)

const (
	// formCopies is how often a form is in memory: as it came, as a text, and as its fields.
	formCopies = 3
	// leftoverTimeout is how long the server reads the rest of a form that was refused, so that its sender sees why.
	leftoverTimeout = time.Second
)

// formIntake reads forms, each in bounded time and all of them in bounded memory. When there is no room, forms of the sender
// who takes the most are cut off, so that senders who never complete theirs do not block others.
type formIntake struct {
	room   *intake.Intake
	within time.Duration
}

// newLoginIntake makes the one for forms of those of whom nothing is known yet: they take no room from anybody else.
func newLoginIntake() formIntake { return formIntake{intake.New(4 << 20), 5 * time.Second} }

// newFormIntake makes the one for forms of those who were let in.
func newFormIntake() formIntake { return formIntake{intake.New(32 << 20), 30 * time.Second} }

// read reads the form of a request of a sender, of at most a number of bytes. Its memory is reserved until free is called. The error
// is a problem.
func (f formIntake) read(w http.ResponseWriter, r *http.Request, sender string, most int64) (free func(), err error) {
	control := http.NewResponseController(w) // only the ResponseWriter of a test has no deadlines
	defer func() {
		if err != nil {
			w.Header().Set("Connection", "close")
			_ = control.SetReadDeadline(time.Now().Add(leftoverTimeout))
		}
	}()
	body := r.ContentLength
	switch {
	case body > most:
		return nil, tooLong(most)
	case body < 0:
		body = most
	}
	_ = control.SetReadDeadline(time.Now().Add(f.within))
	room := f.room.Reserve(sender, intake.SizeOf(r, most)+(formCopies-1)*body, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	if room == nil {
		return nil, busy()
	}
	read := false
	defer func() {
		if !read {
			room.Free()
		}
	}()
	text, err := readBody(w, r, most)
	if !room.StopReading() {
		err = busy()
	}
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
		r.PostForm, err = parseForm(r, text)
	}
	if err != nil {
		return nil, err
	}
	r.Form, read = r.PostForm, true
	return room.Free, nil
}

// loginForm serves a form of which it is not known who has sent it.
func (d *dashboard) loginForm(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		free, err := d.logins.read(w, r, "", maxLoginForm)
		if err != nil {
			d.writeProblem(w, r, "", err)
			return
		}
		defer free()
		next(w, r)
	}
}

func readBody(w http.ResponseWriter, r *http.Request, most int64) (body []byte, err error) {
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, tooLong(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem{http.StatusRequestTimeout, "This took too long", "Nothing was changed. The form did not arrive in time: try again."}
	case err != nil:
		return nil, unreadable()
	default:
		return body, nil
	}
}

// parseForm returns the fields of a form, and refuses one that no page has.
func parseForm(r *http.Request, body []byte) (url.Values, error) {
	if len(body) == 0 {
		return url.Values{}, nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, unreadable()
	}
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, unreadable()
	}
	for name, values := range fields {
		if intake.CheckText(name+strings.Join(values, "")) != nil {
			return nil, unreadable()
		}
	}
	return fields, nil
}

func busy() problem {
	return problem{http.StatusServiceUnavailable, "Too many forms are on their way", "Nothing was changed. Wait a moment, and try again."}
}

func unreadable() problem {
	return problem{http.StatusBadRequest, "This form cannot be read", "Nothing was changed. Go back, reload the page, and try again."}
}

func tooLong(most int64) problem {
	return problem{http.StatusRequestEntityTooLarge, "This is too long", fmt.Sprintf("Nothing was changed. This form may send %d KiB. Use eventctl for more.", most>>10)}
}
