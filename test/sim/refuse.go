package sim

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/internal/sqlstate"
	"eventsv2/test/oracle"
)

// beside is how soon an event has to be written that a refused statement had beside the refused row: a
// statement for each half of the batch, and of that, takes some milliseconds.
const beside = 500 * time.Millisecond

// refusedOps are the writes that a row can refuse.
var refusedOps = [...]memstore.Op{memstore.OpClaim, memstore.OpRenew, memstore.OpComplete, memstore.OpGiveBack}

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
	r := refusal{ops: map[memstore.Op]bool{refusedOps[d.IntN(len(refusedOps))]: true}, code: refusalCodes[d.IntN(len(refusalCodes))]}
	for _, op := range refusedOps {
		if d.chance(0.3) {
			r.ops[op] = true
		}
	}
	w.refusals[id] = r
	from := time.Now()
	w.mu.Lock()
	w.faults["row that the database refuses to write"]++
	i := len(w.history.Faults)
	w.history.Faults = append(w.history.Faults, oracle.Fault{Kind: oracle.RowRefused, Event: id, From: from})
	w.mu.Unlock()
	w.plan.later(d.between(time.Second, most), "", func() {
		delete(w.refusals, id)
		w.mu.Lock()
		defer w.mu.Unlock()
		// Each worker tries it in intervals that grow to as long as it has been refused.
		w.history.Faults[i].To = time.Now().Add(time.Since(from) + 10*time.Second)
		w.poke()
	})
}

// refuse is the database's answer to a process that is about to write a row.
func (p *process) refuse(op memstore.Op, id eventqueue.EventID) error {
	p.writes = append(p.writes, id)
	if r, ok := p.w.refusals[id]; ok && r.ops[op] {
		return &pgconn.PgError{Severity: "ERROR", Code: r.code, Message: "the simulated table refuses this row"}
	}
	return nil
}

// spoilt records what a statement did not write because the database refused another row of it.
func (p *process) spoilt(op memstore.Op, meant oracle.Kind, err error) {
	writes := p.writes
	p.writes = nil
	if !sqlstate.Refused(err) {
		return
	}
	for _, id := range writes {
		if p.w.refusals[id].ops[op] {
			p.w.faults["row refused: "+string(op)]++
			continue
		}
		p.w.faults["statement refused for another's row: "+string(op)]++
		p.w.add(oracle.Record{Kind: oracle.Spoilt, Actor: p.name, Event: id, Meant: meant})
	}
}
