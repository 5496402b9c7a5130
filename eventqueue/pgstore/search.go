package pgstore

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// searching returns a Store whose TakeLost and TakeRound take the events that a worker with these handlers
// can run, and leave the others to workers that can: an event that was taken counts as just notified,
// and no other search would find it for a while (I13, I19).
func (s *Store) searching(known eventqueue.HandlerSet) *Store {
	search := &Store{pool: s.pool, share: s.share, by: s.by, await: s.await}
	for _, key := range known.Everywhere {
		search.runs = append(search.runs, handlerText("", key))
	}
	for _, on := range known.OnCanvas {
		search.runs = append(search.runs, handlerText(on.Canvas.String(), on.Key))
	}
	return search
}

// Awaiting implements maintenance.AwaitingStore: its searches take in a statement of its own what they have found.
func (s *Store) Awaiting(await maintenance.AwaitTake) maintenance.Searches {
	return &Store{pool: s.pool, share: s.share, by: s.by, runs: s.runs, await: await}
}

// A handler is searched for as one text. Where two have the same, a worker finds too much, and
// declines it.
const handlerSeparator = "\x1f"

func handlerText(canvas string, key eventqueue.HandlerKey) string {
	parts := []string{key.Module, key.Name, key.Modifier}
	if canvas != "" {
		parts = append([]string{canvas}, parts...)
	}
	return strings.Join(parts, handlerSeparator)
}

const (
	// anyHandlerSQL stands where runsSQL does in a search for what others run as well.
	anyHandlerSQL = `page.module IS NOT NULL`

	// runsSQL: a row of pageColumnsSQL has a handler that is in a parameter.
	runsSQL = `(concat_ws(chr(31), page.module, page.name, page.modifier) = ANY ($%[1]d::text[])
          OR concat_ws(chr(31), page.canvas_id, page.module, page.name, page.modifier) = ANY ($%[1]d::text[]))`
)

// lostQuery is a statement that has takeLostOfSQL in it, with its arguments, for the events that the
// store searches for.
func (s *Store) lostQuery(sql string, arguments ...any) (string, []any) {
	if s.runs == nil {
		return sql, arguments
	}
	return strings.Replace(sql, anyHandlerSQL, fmt.Sprintf(runsSQL, len(arguments)+1), 1), append(arguments, s.runs)
}

// lostFactor bounds the growing interval between two notifications of an event: it is at most so
// many times the first one. A worker waits for less, since it takes nothing in vain. So it comes before a
// relay that publishes what is lost again and again, to a notifier that does not deliver it.
func (s *Store) lostFactor() int {
	if s.runs == nil {
		return MaxLostAfterFactor
	}
	return ownLostAfterFactor
}

const ownLostAfterFactor = 2
