package inspect

import (
	"cmp"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/internal/spelling"
)

// meantBy returns the handler of a live worker that may have been meant by one that no live worker has on a canvas: its
// module, name or modifier differs in a few letters only. An empty modifier stands for any. The result is zero if a
// worker has the handler, or may have it, or no handler resembles it.
func meantBy(key eventqueue.HandlerKey, canvas eventqueue.CanvasID, workers []Worker) (meant eventqueue.HandlerKey) {
	var known []eventqueue.HandlerKey
	for _, w := range workers {
		if w.State != WorkerLive {
			continue
		}
		if w.Unreadable {
			return eventqueue.HandlerKey{}
		}
		known = append(known, w.Handlers.Everywhere...)
		for _, h := range w.Handlers.OnCanvas {
			if h.Canvas == canvas {
				known = append(known, h.Key)
			}
		}
	}
	slices.SortFunc(known, func(a, b eventqueue.HandlerKey) int { return cmp.Compare(a.String(), b.String()) })
	fewest := -1
	for _, h := range known {
		if h.Module == key.Module && h.Name == key.Name && (h.Modifier == key.Modifier || key.Modifier == "") {
			return eventqueue.HandlerKey{}
		}
		if mistakes, near := mistakesIn(key, h); near && (fewest < 0 || mistakes < fewest) {
			meant, fewest = h, mistakes
		}
	}
	return meant
}

// mistakesIn returns how many mistakes make one handler of another, and whether each of its parts may be a mistake.
func mistakesIn(key, meant eventqueue.HandlerKey) (mistakes int, near bool) {
	if key.Modifier == "" {
		key.Modifier = meant.Modifier
	}
	for _, part := range [][2]string{{key.Module, meant.Module}, {key.Name, meant.Name}, {key.Modifier, meant.Modifier}} {
		n, alike := spelling.Near(part[0], part[1])
		if !alike {
			return 0, false
		}
		mistakes += n
	}
	return mistakes, true
}
