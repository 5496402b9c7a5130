package dashboard

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
)

const (
	// defaultRefresh is the Refresh of a Config without one.
	defaultRefresh = 12 * time.Second
	// readAgainAfter is how old what streams show may be at most: times in it grow also when nothing changes.
	readAgainAfter = 90 * time.Second
	// credentialsEvery is how often it is asked whose tokens and sessions have ended. With the time that the answer may
	// take, a stream outlives them by less than a minute.
	credentialsEvery = 45 * time.Second
	// maxStreams is how many streams there are at once, and maxStreamsOf how many of one identity.
	maxStreams, maxStreamsOf = 64, 8
)

// streamSource is read by streams.
type streamSource struct {
	pulse func(ctx context.Context) (inspect.Pulse, error)
	parts func(ctx context.Context, of asked, pulse inspect.Pulse) (map[eventqueue.CanvasID]part, error)
	// ended returns those of some keys of tokens and sessions that have ended; nil: unknown.
	ended func(ctx context.Context, keys []string) ([]string, error)
}

// streams holds all streams of the process. While there are any, one reader reads for all of them.
type streams struct {
	from           streamSource
	every, timeout time.Duration
	log            *zap.Logger

	mu      sync.Mutex
	open    map[*stream]bool
	begun   int                          // how many streams there ever were
	shown   map[eventqueue.CanvasID]part // by canvas, the zero one for all
	stop    context.CancelFunc           // of the reader; nil while there is none
	closed  bool
	readers sync.WaitGroup
}

// liveReader reads what overviews show: a pulse in each round, and what is shown when the pulse has changed.
type liveReader struct {
	*streams
	mark   string
	readAt time.Time
	failed bool
}

// stream is one page that is looked at.
type stream struct {
	// key is the session or token of the viewer.
	key string
	// canvas is the one that the page shows; nil: all.
	canvas *eventqueue.CanvasID
	// session is the key of the session by which the viewer came in, if they did by one.
	session string
	number  int           // later streams have higher ones
	news    chan part     // holds the newest part that was not sent
	ended   chan struct{} // closed when the viewer may read no longer, another stream has its room, or the dashboard is closed
}

func (s *stream) of() (canvas eventqueue.CanvasID) {
	if s.canvas != nil {
		canvas = *s.canvas
	}
	return canvas
}

// add begins a stream, unless there are too many.
func (l *streams) add(s *stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := 0
	for other := range l.open {
		if other.key == s.key {
			same++
		}
	}
	if l.closed || same >= maxStreamsOf || !l.makeRoom(s.of()) {
		return false
	}
	l.begun++
	s.number = l.begun
	l.open[s] = true
	if l.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		l.stop, l.shown = stop, map[eventqueue.CanvasID]part{}
		l.readers.Go(func() { l.reader().read(ctx) })
	}
	if p, known := l.shown[s.of()]; known {
		s.news <- p
	}
	return true
}

// makeRoom reports whether there is room for a stream of a canvas. When all are taken, canvases share them evenly: one that
// has fewer takes the newest stream of the one that has most. Pages of all canvases count as those of one more.
func (l *streams) makeRoom(of eventqueue.CanvasID) bool {
	if len(l.open) < maxStreams {
		return true
	}
	has, most := map[eventqueue.CanvasID]int{}, of
	for s := range l.open {
		has[s.of()]++
	}
	for canvas, n := range has {
		if n > has[most] {
			most = canvas
		}
	}
	if has[most] <= has[of]+1 {
		return false
	}
	var newest *stream
	for s := range l.open {
		if s.of() == most && (newest == nil || s.number > newest.number) {
			newest = s
		}
	}
	l.end(newest)
	return true
}

// remove ends a stream whose page has gone.
func (l *streams) remove(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(s)
}

func (l *streams) end(s *stream) {
	if !l.open[s] {
		return
	}
	delete(l.open, s)
	close(s.ended)
	if len(l.open) == 0 {
		l.stop()
		l.stop = nil
	}
}

// endAll ends the streams for which it is right.
func (l *streams) endAll(right func(s *stream) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.open {
		if right(s) {
			l.end(s)
		}
	}
}

// close ends all streams, and waits for the reader.
func (l *streams) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.endAll(func(*stream) bool { return true })
	l.readers.Wait()
}

func (l *streams) reader() *liveReader { return &liveReader{streams: l} }

// read reads until the last stream has ended.
func (l *liveReader) read(ctx context.Context) {
	rounds, credentials := time.NewTicker(l.every), time.NewTicker(credentialsEvery)
	defer rounds.Stop()
	defer credentials.Stop()
	refresh := func(ctx context.Context) error { return l.refresh(ctx, time.Now()) }
	for l.attempt(ctx, refresh); ; {
		select {
		case <-rounds.C:
			l.attempt(ctx, refresh)
		case <-credentials.C:
			l.attempt(ctx, l.endRefused)
		case <-ctx.Done():
			return
		}
	}
}

// attempt does something once, in bounded time. Of failures in a row, the first one is logged.
func (l *liveReader) attempt(ctx context.Context, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err := do(ctx)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) && !l.failed {
		l.log.Warn("could not renew the overviews of open pages; trying again", zap.Error(err))
	}
	l.failed = err != nil
}

// endRefused ends the streams of those whose tokens or sessions have ended.
func (l *liveReader) endRefused(ctx context.Context) error {
	if l.from.ended == nil {
		return nil
	}
	asked := map[string]bool{}
	l.mu.Lock()
	for s := range l.open {
		asked[s.key], asked[s.session] = true, true
	}
	l.mu.Unlock()
	ended, err := l.from.ended(ctx, slices.Collect(maps.Keys(asked)))
	l.endAll(func(s *stream) bool { return slices.Contains(ended, s.key) || slices.Contains(ended, s.session) })
	return err
}

// refresh asks whether something has changed, reads it, and gives it to the streams.
func (l *liveReader) refresh(ctx context.Context, now time.Time) error {
	of, known := l.asked()
	pulse, err := l.from.pulse(ctx)
	if err != nil || known && pulse.Mark == l.mark && now.Sub(l.readAt) < readAgainAfter {
		return err
	}
	shown, err := l.from.parts(ctx, of, pulse)
	if err != nil {
		return err
	}
	l.mark, l.readAt = pulse.Mark, now
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = shown
	for s := range l.open {
		if p, known := shown[s.of()]; known {
			select {
			case <-s.news: // an older one
			default:
			}
			s.news <- p
		}
	}
	return nil
}

// asked returns the canvases of the streams, and whether all of them were read before.
func (l *streams) asked() (of asked, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known = true
	seen := map[eventqueue.CanvasID]bool{}
	for s := range l.open {
		canvas := s.of()
		if _, was := l.shown[canvas]; !was {
			known = false
		}
		switch {
		case s.canvas == nil:
			of.all = true
		case !seen[canvas]:
			of.canvases = append(of.canvases, canvas)
		}
		seen[canvas] = true
	}
	return of, known
}
