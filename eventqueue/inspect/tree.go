package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
)

// Tree is an event with the events that its handler emitted, their children, and so on.
type Tree struct {
	ID eventqueue.EventID
	// Queued and Logged are as in Shown, without the value. Both are nil for an event that is
	// known by its children only: it completed, and its history is not retained.
	Queued *QueuedEvent
	Logged *LogEntry
	// Children are in the order of their ids.
	Children []*Tree
}

const (
	parentOfSQL = `
SELECT coalesce(parent_id, 0) FROM events_v2 WHERE id = $1
UNION ALL
SELECT coalesce(parent_id, 0) FROM event_log WHERE id = $1
LIMIT 1`

	// Each child is in one of the two tables; a row that was put back by hand may be in both.
	childrenSQL = `
SELECT id, parent_id
FROM (
    (SELECT id, parent_id FROM events_v2 WHERE parent_id = ANY ($1::bigint[]) ORDER BY id LIMIT $2)
    UNION
    (SELECT id, parent_id FROM event_log WHERE parent_id = ANY ($1::bigint[]) ORDER BY id LIMIT $2)
) AS children
ORDER BY id
LIMIT $2`
)

var treeEventsSQL = eventsSQL + ` AND id = ANY ($5::bigint[])`

// Tree returns the tree in which an event stands, from the farthest ancestor that is known, with at
// most limit events; more says that there are others. An ancestor that completed without history
// ends the way upwards, since its parent is unknown. The result is nil if no table knows the
// event, nor a child of it. Tree reads at one moment, with one statement for each ancestor and for each generation.
func (r *Reader) Tree(ctx context.Context, id eventqueue.EventID, limit int) (tree *Tree, more bool, err error) {
	err = r.pool.Snapshot(ctx, func(tx pgsession.DB) error {
		root, err := rootOf(ctx, tx, id, limit)
		if err != nil {
			return err
		}
		all := map[eventqueue.EventID]*Tree{root: {ID: root}}
		if more, err = addChildren(ctx, tx, all, root, limit); err != nil {
			return err
		}
		if err := fill(ctx, tx, all); err != nil {
			return err
		}
		if tree = all[root]; len(all) == 1 && tree.Queued == nil && tree.Logged == nil {
			tree = nil
		}
		return nil
	})
	return tree, more, err
}

// rootOf walks up from an event. Parents are set by emitters, so they may form a circle.
func rootOf(ctx context.Context, tx eventqueue.DB, id eventqueue.EventID, limit int) (eventqueue.EventID, error) {
	for seen := map[eventqueue.EventID]bool{id: true}; len(seen) <= limit; seen[id] = true {
		parent, err := optional(ctx, tx, pgx.RowTo[eventqueue.EventID], parentOfSQL, id)
		if err != nil {
			return 0, err
		}
		if parent == nil || *parent == 0 || seen[*parent] {
			break
		}
		id = *parent
	}
	return id, nil
}

// addChildren adds the descendants of an event to all, a generation at a time.
func addChildren(ctx context.Context, tx eventqueue.DB, all map[eventqueue.EventID]*Tree, root eventqueue.EventID, limit int) (more bool, err error) {
	type child struct{ ID, Parent eventqueue.EventID }
	for parents := []eventqueue.EventID{root}; len(parents) > 0; {
		rows, err := tx.Query(ctx, childrenSQL, parents, limit-len(all)+1)
		if err != nil {
			return false, err
		}
		children, err := pgx.CollectRows(rows, pgx.RowToStructByPos[child])
		if err != nil {
			return false, err
		}
		parents = parents[:0]
		for _, c := range children {
			if all[c.ID] != nil {
				continue
			}
			if len(all) >= limit {
				return true, nil
			}
			node := &Tree{ID: c.ID}
			all[c.ID], all[c.Parent].Children = node, append(all[c.Parent].Children, node)
			parents = append(parents, c.ID)
		}
	}
	return false, nil
}

// fill reads the events of a tree.
func fill(ctx context.Context, tx eventqueue.DB, all map[eventqueue.EventID]*Tree) error {
	ids := make([]eventqueue.EventID, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	rows, err := tx.Query(ctx, treeEventsSQL, Filter{}.args(false, ids)...)
	if err != nil {
		return err
	}
	queued, err := pgx.CollectRows(rows, scanQueued)
	if err != nil {
		return err
	}
	for i := range queued {
		all[queued[i].ID].Queued = &queued[i]
	}
	if rows, err = tx.Query(ctx, showLogSQL, false, ids); err != nil {
		return err
	}
	logged, err := pgx.CollectRows(rows, scanLogged)
	if err != nil {
		return err
	}
	for i := range logged {
		all[logged[i].ID].Logged = &logged[i]
	}
	return nil
}
