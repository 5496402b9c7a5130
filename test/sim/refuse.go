package sim

import (
	"strconv"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/sqlstate"
	"eventsv2/test/oracle"
)

// beside is how soon an event has to be written that a refused statement had beside the refused row: a
// statement for each half of the batch, and of that, takes some milliseconds.
const beside = 500 * time.Millisecond

// refusalCodes are of a constraint, of a trigger, of a number that is too large, and of a right that is
// missing, which may be missing for all rows.
var refusalCodes = [...]string{"23514", "P0001", "22003", "42501"}

// mayRefuse decides whether the database will refuse to write a row that was just inserted, for a
// while. It is called by one who has passed the gate.
func (w *world) mayRefuse(id eventqueue.EventID) {
	d := w.dice
	chance, most := 0.06, 90*time.Second
	switch {
	case !w.refuses:
		return
	case !w.attacking && (!w.lastRefusals || w.spoken.Load()):
		return
	case !w.attacking:
		chance, most = 0.3, 40*time.Second
	}
	if !d.chance(chance) {
		return
	}
	r := rowRefusal{kinds: 1 << d.IntN(4), code: refusalCodes[d.IntN(len(refusalCodes))]}
	for kind := range 4 {
		if d.chance(0.3) {
			r.kinds |= 1 << kind
		}
	}
	w.refusals[id] = r
	w.tables.exec(`INSERT INTO sim.refusals VALUES ($1, $2, $3)`, id, r.kinds, r.code)
	from := time.Now()
	w.mu.Lock()
	w.faults["row that the database refuses to write"]++
	i := len(w.history.Faults)
	w.history.Faults = append(w.history.Faults, oracle.Fault{Kind: oracle.RowRefused, Event: id, From: from})
	w.mu.Unlock()
	w.plan.later(d.between(time.Second, most), "", func() {
		delete(w.refusals, id)
		w.tables.exec(`DELETE FROM sim.refusals WHERE id = $1`, id)
		w.mu.Lock()
		defer w.mu.Unlock()
		// Each worker tries it in intervals that grow to as long as it has been refused.
		w.history.Faults[i].To = time.Now().Add(time.Since(from) + 10*time.Second)
		w.poke()
	})
}

// spoilt records what a statement did not write because the database refused another row of it.
func (p *process) spoilt(op string, meant oracle.Kind, err error) {
	var writes []eventqueue.EventID // that the statement came to before it was refused
	for _, notice := range p.w.tables.takeNotices() {
		if text, ours := strings.CutPrefix(notice, "sim writes "); ours {
			id, err := strconv.ParseInt(text, 10, 64)
			must(err)
			writes = append(writes, eventqueue.EventID(id))
		}
	}
	if !sqlstate.Refused(err) {
		return
	}
	for _, id := range writes {
		if p.w.refusals[id].kinds&kindsOf[op] > 0 {
			p.w.faults["row refused: "+op]++
			continue
		}
		p.w.faults["statement refused for another's row: "+op]++
		p.w.add(oracle.Record{Kind: oracle.Spoilt, Actor: p.name, Event: id, Meant: meant})
	}
}
