package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
)

const (
	nameCanvasSQL = `
INSERT INTO canvas_names (canvas_id, name) VALUES ($1, $2)
ON CONFLICT (canvas_id) DO UPDATE SET name = excluded.name`

	unnameCanvasSQL = `DELETE FROM canvas_names WHERE canvas_id = $1`

	canvasNameAsJSONSQL = `SELECT (SELECT to_jsonb(n)::text FROM canvas_names n WHERE n.canvas_id = $1)`
)

// NameCanvas gives a canvas a name in place of the one that it has. It returns operate.ErrCanvasNameTaken for the name of another
// canvas.
func (s *Store) NameCanvas(ctx context.Context, name operate.CanvasName) error {
	if err := name.Validate(); err != nil {
		return err
	}
	err := s.change(ctx, canvasNameRow("name_canvas", name.Canvas), func(tx pgsession.DB) error {
		_, err := tx.Exec(ctx, nameCanvasSQL, [16]byte(name.Canvas), name.Name)
		return err
	})
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.ConstraintName == "canvas_names_name_key" {
		return operate.ErrCanvasNameTaken
	}
	return err
}

// UnnameCanvas takes the name of a canvas away, and reports whether it had one.
func (s *Store) UnnameCanvas(ctx context.Context, canvas eventqueue.CanvasID) (had bool, err error) {
	err = s.change(ctx, canvasNameRow("unname_canvas", canvas), func(tx pgsession.DB) error {
		tag, err := tx.Exec(ctx, unnameCanvasSQL, [16]byte(canvas))
		had = tag.RowsAffected() > 0
		return err
	})
	return had, err
}

// canvasNameRow is the name of a canvas for the audit log.
func canvasNameRow(action string, canvas eventqueue.CanvasID) auditedRow {
	return auditedRow{action: action, canvas: canvas, target: map[string]string{"setting": "name"}, read: canvasNameAsJSONSQL, args: []any{[16]byte(canvas)}}
}
