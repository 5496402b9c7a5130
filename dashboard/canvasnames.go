package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/logkey"
)

// namedCanvas is a canvas with its name, which is empty if it has none, or it is not known.
type namedCanvas struct {
	Canvas eventqueue.CanvasID
	Name   string
}

// canvasNames are the names of the canvases of one page. The page is written twice if there are any: the first time it is found out which
// canvases it shows.
type canvasNames struct {
	names   map[eventqueue.CanvasID]string
	unknown map[eventqueue.CanvasID]bool
}

// namesFor are the names that are known before a page is written: that of the canvas that its viewer has named.
func namesFor(who viewer) *canvasNames {
	n := &canvasNames{map[eventqueue.CanvasID]string{}, map[eventqueue.CanvasID]bool{}}
	if who.asked != nil && who.asked.Name != "" {
		n.names[who.asked.Canvas] = who.asked.Name
	}
	return n
}

// of returns a canvas with its name, and notes that it is shown. Without canvasNames it has none.
func (n *canvasNames) of(canvas eventqueue.CanvasID) namedCanvas {
	if n == nil {
		return namedCanvas{Canvas: canvas}
	}
	name, known := n.names[canvas]
	n.unknown[canvas] = !known
	return namedCanvas{canvas, name}
}

// readNames reads the names of the canvases that a page shows, with one statement, and reports whether there are any that were not known. A
// page whose names cannot be read shows uuids.
func (d *dashboard) readNames(r *http.Request, n *canvasNames) bool {
	var canvases []eventqueue.CanvasID
	for canvas, unknown := range n.unknown {
		if unknown {
			canvases = append(canvases, canvas)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	names, err := d.Reader.CanvasNames(ctx, canvases)
	if err != nil {
		const failed = "could not read the names of canvases; pages show their uuids"
		d.lines.Write(failed, func() { d.Log.Warn(failed, zap.Error(err)) }, func(lines int) { d.Log.Warn(failed+"; further entries were left out", zap.Int(logkey.Count, lines)) })
		return false
	}
	maps.Copy(n.names, names)
	return len(names) > 0
}

// unknownCanvas is the error for a text that is no canvas.
type unknownCanvas string

func (u unknownCanvas) Error() string {
	return fmt.Sprintf("canvas %q is not a uuid, and no canvas that you may read has this name", line(string(u)))
}

// canvasOf returns the canvas that a viewer has written: its uuid, or the name of one that they may read, with its name then. Of other canvases
// nobody learns whether there is one of a name.
func (d *dashboard) canvasOf(ctx context.Context, who viewer, text string) (found namedCanvas, err error) {
	text = strings.TrimSpace(text)
	if found.Canvas, err = eventqueue.ParseCanvasID(text); err == nil {
		return found, nil
	}
	if operate.CheckCanvasName(text) != nil {
		return found, unknownCanvas(text)
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	canvas, err := d.Reader.CanvasNamed(ctx, text)
	switch {
	case err != nil:
		return found, err
	case canvas == nil || !who.May(access.Read, *canvas):
		return found, unknownCanvas(text)
	default:
		return namedCanvas{*canvas, text}, nil
	}
}

// canvasOfForm returns the canvas of a form, whose sender has to administer it. A mistake leads to the page at a path.
func (d *dashboard) canvasOfForm(r *http.Request, path string) (eventqueue.CanvasID, error) {
	found, err := d.canvasOf(r.Context(), viewerOf(r), r.PostFormValue("canvas"))
	if unknown, is := errors.AsType[unknownCanvas](err); is {
		return found.Canvas, mistake{path, unknown}
	}
	if err == nil && !viewerOf(r).May(access.Administer, found.Canvas) {
		err = forbidden(access.Administer)
	}
	return found.Canvas, err
}
