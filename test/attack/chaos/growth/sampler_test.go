package growth

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestProcessIsMeasured(t *testing.T) {
	t.Parallel()
	if n, err := openFiles(os.Getpid()); err != nil || n < 3 {
		t.Errorf("%g files, %v", n, err)
	}
	if size, err := privateMemory(os.Getpid()); err != nil || size < 4096 {
		t.Errorf("%g bytes, %v", size, err)
	}
}

func TestListenerRunsUntilAnotherStatement(t *testing.T) {
	t.Parallel()
	var l Listener
	l.Listen(strings.NewReader("{\"goroutines\":3,\"heap\":5}\n{\"goroutines\":4,\"heap\":6}\nnonsense\n{\"goroutines\":9}\n"))
	if got := l.last(); got != (Size{4, 6}) {
		t.Errorf("heard %+v", got)
	}
}

// TestGrowthIsFound: the whole way from a measurement to the verdict, with a report that
// grows and one that does not.
func TestGrowthIsFound(t *testing.T) {
	t.Parallel()
	const load = time.Hour
	grows, stays := &Listener{}, &Listener{}
	s := &Sampler{Pool: testenv.Pool(t), Processes: func() map[string]*programs.Process { return nil },
		Reports: map[string]*Listener{"grows": grows, "stays": stays}, series: map[measure][]point{}}
	for i := range 240 {
		s.began = time.Now().Add(-time.Duration(i) * load / 240)
		grows.size, stays.size = Size{Goroutines: 100 + i, Heap: 1}, Size{Goroutines: 100 + i%7, Heap: 1}
		s.sample(t.Context())
	}
	got := s.End(t.Context(), load)
	// What else uses the server at the moment is not up to this test.
	if names := got.Growing(); !slices.Contains(names, "goroutines(grows)") || slices.Contains(names, "goroutines(stays)") || got.Missed != 0 {
		t.Errorf("growth=%s, %d missed\n%s", got.Verdict(), got.Missed, got.Table())
	}
}
