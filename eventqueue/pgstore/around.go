package pgstore

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/refusal"
)

// changeAround has an operator's change made by halves where the database refuses rows (I15). It
// returns what change returns for the others, and these as refused, by their ids. The
// results beside an error are of those that were changed before it.
func changeAround(ids []eventqueue.EventID, change func(ids []eventqueue.EventID) ([]operate.Changed, error)) (results []operate.Changed, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	alone, err := refusal.Halve(func(ids []eventqueue.EventID) error {
		some, err := change(ids)
		if err == nil {
			results = append(results, some...)
		}
		return err
	}, ids)
	for _, r := range alone {
		results = append(results, operate.Changed{ID: r.Item, Result: operate.ChangeRefused, Err: r.Err})
	}
	slices.SortFunc(results, func(a, b operate.Changed) int { return cmp.Compare(a.ID, b.ID) })
	return results, err
}

// collect reads the rows of an answer.
func collect[T any](into *[]T, scan pgx.RowToFunc[T]) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	}
}
