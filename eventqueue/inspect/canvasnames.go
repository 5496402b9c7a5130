package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// MostNames is how many canvases CanvasNames looks up.
const MostNames = 1000

const canvasNamesSQL = `SELECT canvas_id, name FROM canvas_names WHERE canvas_id = ANY ($1::uuid[])`

// CanvasNames returns the names of those of some canvases that have one, of the first MostNames. It blocks for one statement, and for none
// without a canvas.
func (r *Reader) CanvasNames(ctx context.Context, canvases []eventqueue.CanvasID) (map[eventqueue.CanvasID]string, error) {
	names := map[eventqueue.CanvasID]string{}
	if len(canvases) == 0 {
		return names, nil
	}
	ids := make([][16]byte, min(len(canvases), MostNames))
	for i := range ids {
		ids[i] = canvases[i]
	}
	rows, err := r.pool.Query(ctx, canvasNamesSQL, ids)
	if err != nil {
		return nil, err
	}
	var canvas [16]byte
	var name string
	_, err = pgx.ForEachRow(rows, []any{&canvas, &name}, func() error {
		names[canvas] = name
		return nil
	})
	return names, err
}

const canvasNamedSQL = `SELECT canvas_id FROM canvas_names WHERE name = $1`

// CanvasNamed returns the canvas of a name, which has to pass operate.CheckCanvasName, or nil if none has it. It blocks for one statement.
func (r *Reader) CanvasNamed(ctx context.Context, name string) (*eventqueue.CanvasID, error) {
	return optional(ctx, r.pool, func(row pgx.CollectableRow) (canvas eventqueue.CanvasID, err error) {
		err = row.Scan((*[16]byte)(&canvas))
		return canvas, err
	}, canvasNamedSQL, name)
}

const listCanvasNamesSQL = `SELECT canvas_id, name FROM canvas_names WHERE name > $1 ORDER BY name LIMIT $2`

// ListCanvasNames lists at most limit names in their order, byte by byte, from the one after a text on; "" is the beginning. It blocks for
// one statement.
func (r *Reader) ListCanvasNames(ctx context.Context, after string, limit int) ([]operate.CanvasName, error) {
	rows, err := r.pool.Query(ctx, listCanvasNamesSQL, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n operate.CanvasName, err error) {
		err = row.Scan((*[16]byte)(&n.Canvas), &n.Name)
		return n, err
	})
}
