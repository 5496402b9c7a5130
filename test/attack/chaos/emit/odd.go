package emit

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/test/attack/chaos/check"
)

// insertOdd does what a program does that writes the table by hand and makes a mistake.
func insertOdd(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error {
	for _, event := range events {
		t := taskOf(event)
		row := check.OddRows()[t.Odd-1]
		_, err := e.pool.Exec(ctx, row.InsertSQL(), [16]byte(event.Canvas), event.Module, event.Name, string(event.Value), row.Column != "value")
		var broken *pgconn.PgError
		switch constraint := errors.As(err, &broken) && strings.HasPrefix(broken.Code, "23"); {
		case err != nil && !constraint:
			return err
		case row.Fate == check.FateRefused:
			return errUndo // which the checker holds it to, also when the table took it
		}
	}
	return nil // so that one that the table should have taken is lost if it did not
}
