package growth

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"eventsv2/internal/backoff"
)

// Size is how large a process is.
type Size struct {
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap"` // bytes in use after the last collection
}

// reportEvery is the time between two reports of a process.
const reportEvery = time.Second

// WriteSizes writes the size of this process every second until ctx ends, for a Listener.
func WriteSizes(ctx context.Context, out io.Writer) error {
	lines := json.NewEncoder(out)
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for backoff.Sleep(ctx, reportEvery) {
		metrics.Read(heap)
		if err := lines.Encode(Size{runtime.NumGoroutine(), heap[0].Value.Uint64()}); err != nil {
			return err
		}
	}
	return nil
}

// Listener hears what one process reports.
type Listener struct {
	mu   sync.Mutex
	size Size // the last one
}

// Listen reads to the end of the reports. What is none ends the listening, and not the process.
func (l *Listener) Listen(from io.Reader) {
	lines := json.NewDecoder(from)
	for {
		var one Size
		if err := lines.Decode(&one); err != nil {
			_, _ = io.Copy(io.Discard, from) // the process must be able to write
			return
		}
		l.mu.Lock()
		l.size = one
		l.mu.Unlock()
	}
}

// last returns the last report, of no goroutines if there is none.
func (l *Listener) last() Size {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}
