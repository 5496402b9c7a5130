package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

func lockedScenarios() []scenario {
	return []scenario{
		{"rows-locked-by-others", "an open transaction that holds rows of some canvases in all tables delays no other canvas", 50 * time.Second, rowsLockedByOthers},
		{"history-locked", "while somebody holds the history, what has run keeps its locks, and nothing runs twice", 50 * time.Second, historyLocked},
	}
}

// othersOf is added to the number of a canvas for the one that has the same and is not held.
const othersOf byte = 100

// rowsLockedByOthers has an operator forget to commit.
func rowsLockedByOthers(ctx context.Context, r *rig) {
	keyed := func(i int) string { return strconv.Itoa(i % 5) }
	kinds := []heldKind{{"plain", plainCanvas, nil}, {"limited", limitedCanvas, nil}, {"lines", groupCanvas, keyed}, {"rated", ratedCanvas, nil}}
	settings := impatient("5s")
	r.cron(ctx, settings)
	r.worker(ctx, "worker-1", settings)
	r.worker(ctx, "worker-2", settings)
	r.target.behave("work", takes(20*time.Millisecond))
	for _, offset := range []byte{0, othersOf} {
		for _, args := range [][]string{
			{"limit", "concurrency", "set", "--canvas", canvas(limitedCanvas + offset).String(), "--max", strconv.Itoa(runningMax)},
			{"limit", "rate", "set", "--canvas", canvas(ratedCanvas + offset).String(), "--per-minute", "1000"},
		} {
			if text, status := r.ctl(ctx, args...); status != 0 {
				r.fatalf("eventctl %v: %s", args, text)
			}
		}
	}
	emitToHold(ctx, r, kinds)
	r.emit(ctx, batch{label: "held_lines", n: 400, canvas: groupCanvas, key: keyed})
	if !r.eventually(ctx, startLimit, func() bool { return r.begun("held_lines") >= 5 }) {
		r.fatalf("no event of the groups has begun")
	}
	from := time.Now()
	tx := holdRows(ctx, r)
	var emitting sync.WaitGroup
	for _, k := range kinds { // what is held, beside the others' and by the same emitter
		emitting.Go(func() {
			trying, cancel := context.WithTimeout(ctx, aWhile)
			defer cancel()
			for trying.Err() == nil {
				r.emit(ctx, batch{label: "beside_" + k.label, n: 1, canvas: k.canvas, key: k.key, every: 200 * time.Millisecond})
			}
		})
		emitting.Go(func() {
			r.emit(ctx, batch{label: "others_" + k.label, n: 120, canvas: k.canvas + othersOf, key: k.key, every: 100 * time.Millisecond})
		})
	}
	backoff.Sleep(ctx, aWhile)
	for _, k := range kinds {
		r.punctual("others_"+k.label, 1, 5*time.Second)
	}
	r.must(tx.Rollback(ctx))
	r.fault(oracle.LostDatabase, "", from.Add(-time.Second), time.Now().Add(time.Second))
	emitting.Wait()
	for _, k := range kinds {
		for _, which := range []string{"others_", "later_", "beside_"} {
			r.awaitDone(ctx, which+k.label, time.Minute)
		}
	}
	r.awaitDone(ctx, "held_lines", time.Minute)
	r.inOrder("held_lines")
	r.inOrder("others_lines")
	r.awaitDone(ctx, "unique", startLimit)
}

// heldKind is a kind of events of which some rows are held.
type heldKind struct {
	label  string
	canvas byte
	key    func(int) string
}

// emitToHold leaves a row of each kind in every table.
func emitToHold(ctx context.Context, r *rig, kinds []heldKind) {
	for _, k := range kinds {
		r.emit(ctx, batch{label: "later_" + k.label, n: 20, canvas: k.canvas, key: k.key, delay: 5 * time.Second})
		r.emit(ctx, batch{label: "first_" + k.label, n: 20, canvas: k.canvas, key: func(int) string {
			if k.key != nil {
				return "first"
			}
			return ""
		}})
		r.awaitDone(ctx, "first_"+k.label, startLimit)
	}
	unique := func(ctx context.Context, events []eventqueue.NewEvent) (ids []eventqueue.EventID, err error) {
		for i := range events {
			events[i].UniqueKey, events[i].UniqueFor = string(events[i].Value), time.Hour
		}
		emitted, err := r.emitter.EmitUnique(ctx, events...)
		for _, e := range emitted {
			ids = append(ids, e.ID)
		}
		return ids, err
	}
	r.emitBy(ctx, batch{label: "unique", n: 20, canvas: uniqueCanvas}, unique)
}

// holdRows begins a transaction that holds rows of some canvases in all tables.
func holdRows(ctx context.Context, r *rig) pgx.Tx {
	tx, err := r.db.BeginTx(ctx, pgx.TxOptions{})
	r.must(err)
	for _, table := range []string{"events_v2", "concurrency_limits", "rate_limits", "rate_counters", "event_groups", "unique_keys"} {
		// Without SKIP LOCKED it could deadlock with workers. What these hold just now they let go soon.
		var held int64
		r.eventually(ctx, startLimit, func() bool {
			tag, err := tx.Exec(ctx, `SELECT FROM `+table+` WHERE canvas_id = ANY($1) FOR UPDATE SKIP LOCKED`, heldCanvases())
			r.must(err)
			held = tag.RowsAffected()
			return held > 0
		})
		r.figure("%s=%d", table, held)
		if held == 0 {
			r.failf("no row of %s is held: the scenario shows nothing", table)
		}
	}
	return tx
}

func heldCanvases() (all [][16]byte) {
	for _, c := range []byte{plainCanvas, limitedCanvas, groupCanvas, ratedCanvas, uniqueCanvas} {
		all = append(all, canvas(c))
	}
	return all
}

// historyLocked has somebody rewrite the table of the history, into which each completion writes.
func historyLocked(ctx context.Context, r *rig) {
	settings := impatient("4s")
	r.cron(ctx, settings)
	programs := []*program{r.worker(ctx, "worker", settings), r.embed(ctx, "app", settings)}
	r.target.behave("work", takes(100*time.Millisecond))
	r.emit(ctx, batch{label: "before", n: 2000})
	// Five seconds at least, so that they are not over when the history is held.
	r.emit(ctx, batch{label: "lines", n: 500, canvas: groupCanvas, key: func(i int) string { return fmt.Sprint(i % 10) }})
	if !r.eventually(ctx, startLimit, func() bool { return r.begun("before") >= 100 }) {
		r.fatalf("%d events have begun, want 100", r.begun("before"))
	}
	r.must(pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE event_log IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		if r.number(ctx, `SELECT count(*) FROM events_v2`) < 200 {
			r.failf("few events are left: the scenario shows nothing")
		}
		backoff.Sleep(ctx, 2*aWhile)
		return nil
	}))
	r.awaitDone(ctx, "before", time.Minute)
	r.awaitDone(ctx, "lines", time.Minute)
	r.inOrder("lines")
	for _, p := range programs {
		if !p.Running() {
			r.failf("%s ended: %s", p.Name, p.LastWords())
		}
	}
}
