package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

const (
	// streamLasts is how long a stream goes on at most; the browser begins another one.
	streamLasts = time.Hour
	// keepAliveEvery is how often a stream says something, so that no proxy closes it, and the page can tell a
	// stream without news from a connection that has gone silent.
	keepAliveEvery = 25 * time.Second
	// writeWithin bounds one write to a browser.
	writeWithin = 10 * time.Second
)

// stream serves the overview as server-sent events: each has what the page shows, as HTML.
func (d *dashboard) stream(w http.ResponseWriter, r *http.Request) {
	filter, err := d.filter(r)
	if err != nil {
		d.writeProblem(w, r, "", err)
		return
	}
	s, lasts := d.newStream(r, filter.Canvas)
	// A stream outlives the times that the server gives a request.
	control := http.NewResponseController(w)
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Now().Add(writeWithin))); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return // the connection has ended
	}
	if !d.streams.add(s.stream) {
		w.Header().Set("Retry-After", "60")
		d.writeProblem(w, r, "", problem{http.StatusServiceUnavailable, "Too many pages are open", "Reload the page to see what is new."})
		return
	}
	defer d.streams.remove(s.stream)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies pass on each event as it comes
	d.send(w, r, s, lasts)
}

// watcher is a stream, and who looks at its page.
type watcher struct {
	*stream
	who viewer
}

// newStreams makes the streams of the dashboard: there are none yet.
func (d *dashboard) newStreams() *streams {
	l := &streams{open: map[*stream]bool{}, every: d.Refresh, timeout: d.Timeout, log: d.Log, from: streamSource{pulse: d.Reader.Pulse, parts: d.readParts}}
	if d.Access != nil {
		l.from.ended = d.Access.Tokens.Ended
	}
	return l
}

// newStream returns a stream for the viewer, and how long it lasts.
func (d *dashboard) newStream(r *http.Request, canvas *eventqueue.CanvasID) (watcher, time.Duration) {
	who := d.viewer(r)
	s := watcher{&stream{key: who.key(), canvas: canvas, news: make(chan part, 1), ended: make(chan struct{})}, who}
	lasts := streamLasts
	if s.who.EndsIn > 0 {
		lasts = min(lasts, s.who.EndsIn)
	}
	if s.who.Session {
		session := d.cookieOf(r, sessionCookie)
		s.session = d.sessions.Key(session)
		lasts = min(lasts, d.sessions.Lasts(session))
	}
	return s, lasts
}

// send sends what is new until the page has gone, the stream has ended, or its time is over.
func (d *dashboard) send(w http.ResponseWriter, r *http.Request, s watcher, lasts time.Duration) {
	end, alive := time.NewTimer(lasts), time.NewTicker(keepAliveEvery)
	defer end.Stop()
	defer alive.Stop()
	control := http.NewResponseController(w)
	text := "retry: 5000\n\n"
	for {
		if err := control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return
		}
		if _, err := w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return
		}
		select {
		case p := <-s.news:
			var err error
			if text, err = d.rendered(p, s); err != nil {
				d.Log.Error("write an overview for a stream", zap.Error(err))
				return
			}
		case <-alive.C:
			if text = "event: alive\ndata:\n\n"; !d.staysIn(r) {
				return
			}
		case <-end.C:
			return
		case <-s.ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// staysIn asks the application whether the viewer is still one. Of tokens the reader of all streams knows.
func (d *dashboard) staysIn(r *http.Request) bool {
	if d.Identify == nil {
		return true
	}
	who, err := d.Identify(r)
	return err == nil && who.Key == viewerOf(r).Key
}

// rendered is the overview as an event.
func (d *dashboard) rendered(p part, s watcher) (string, error) {
	var page bytes.Buffer
	v := layout{Base: d.Prefix, Page: "overview", Now: time.Now().UTC(), Who: s.who, Data: d.overviewOf(p, s.who, s.canvas)}
	if err := d.pages["overview"].ExecuteTemplate(&page, "live", v); err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(string(withoutControls(page.Bytes()))) {
		_, _ = fmt.Fprintf(&b, "data: %s\n", strings.TrimSuffix(line, "\n"))
	}
	return b.String() + "\n", nil
}
