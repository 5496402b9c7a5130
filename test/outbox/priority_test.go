package outbox

import (
	"fmt"
	"testing"

	"eventsv2/eventqueue"
)

// priorityOf is that of an event.
func (r *rig) priorityOf(db querier, id eventqueue.EventID) string {
	r.t.Helper()
	return one[string](r, db, `SELECT coalesce(priority::text, 'normal') FROM events_v2 WHERE id = $1`, int64(id))
}

// TestTransactionSetsThePriorityOfItsEvents, also within a savepoint, a function that handles
// exceptions, and after a savepoint was rolled back.
func TestTransactionSetsThePriorityOfItsEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(r.pool, `CREATE FUNCTION emit_in_a_block(priority text) RETURNS bigint LANGUAGE plpgsql AS $$
		BEGIN
			RETURN events_prioritize(events_emit('`+tenant+`', 'WORKER', 'greet', '1'), priority);
		EXCEPTION WHEN division_by_zero THEN
			RETURN NULL;
		END $$`)
	emit := `events_emit('` + tenant + `', 'WORKER', 'greet', '1')`
	for name, sql := range map[string]string{
		"plain":         `SELECT events_prioritize(` + emit + `, '%s')`,
		"with keys":     `SELECT events_prioritize(events_emit('` + tenant + `', 'WORKER', 'greet', '1', ordering_key => 'k', unique_key => gen_random_uuid()::text), '%s')`,
		"in a function": `SELECT emit_in_a_block('%s')`,
		"changed":       `SELECT events_prioritize(events_prioritize(` + emit + `, 'low'), '%s')`,
	} {
		for _, priority := range []string{"high", "normal", "low"} {
			tx := r.begin()
			r.exec(tx, `SAVEPOINT a; SELECT `+emit+`; ROLLBACK TO a; SAVEPOINT b`)
			id := one[eventqueue.EventID](r, tx, fmt.Sprintf(sql, priority))
			r.exec(tx, `RELEASE b`)
			r.commit(tx)
			if got := r.priorityOf(r.pool, id); got != priority {
				t.Errorf("%s: an event of priority %s is of priority %s", name, priority, got)
			}
		}
	}
	if refused := r.refused(r.pool, `SELECT events_prioritize(`+emit+`, 'urgent')`); refused.Message != `events_prioritize: the priority is "urgent"` || refused.Hint == "" {
		t.Errorf("a wrong priority is refused with %q, %q", refused.Message, refused.Hint)
	}
	if refused := r.refused(r.pool, `SELECT events_prioritize(`+emit+`, NULL)`); refused.Message != `events_prioritize: the priority is NULL` {
		t.Errorf("no priority is refused with %q", refused.Message)
	}
}

// TestEventsOfOthersKeepTheirPriority: those of transactions that have ended, under the same key as well.
func TestEventsOfOthersKeepTheirPriority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	emit := `events_emit('` + tenant + `', 'WORKER', 'greet', '1', unique_key => 'once')`
	id := one[eventqueue.EventID](r, r.pool, `SELECT events_prioritize(`+emit+`, 'low')`)
	for _, sql := range []string{`SELECT events_prioritize(` + emit + `, 'high')`, fmt.Sprintf(`SELECT events_prioritize(%d, 'high')`, id)} {
		if got := one[eventqueue.EventID](r, r.pool, sql); got != id || r.priorityOf(r.pool, id) != "low" {
			t.Errorf("%s: event %d is %s", sql, got, r.priorityOf(r.pool, id))
		}
	}
	replace := `events_emit('` + tenant + `', 'WORKER', 'greet', '1', unique_key => 'newest', unique_mode => 'replace')`
	id = one[eventqueue.EventID](r, r.pool, `SELECT events_prioritize(`+replace+`, 'low')`)
	if got := one[eventqueue.EventID](r, r.pool, `SELECT events_prioritize(`+replace+`, 'high')`); got != id || r.priorityOf(r.pool, id) != "low" {
		t.Errorf("event %d, which replaces %d, is %s", got, id, r.priorityOf(r.pool, id))
	}
	if got := one[eventqueue.EventID](r, r.pool, `SELECT events_prioritize(4711, 'high')`); got != 4711 {
		t.Errorf("of an event that is gone, %d is returned", got)
	}
}
