package sim

import (
	"time"

	"eventsv2/test/oracle"
)

// nemesis makes the faults, and what follows from them, at the times that the dice give.
// Its methods are called by the controller, but for kill.
type nemesis struct{ w *world }

// later plans a deed.
func (n nemesis) later(after time.Duration, what string, do func()) { n.w.plan.later(after, what, do) }

// attack does one random thing and plans the next one.
func (n nemesis) attack() {
	w := n.w
	if !w.attacking {
		return
	}
	w.poke()
	d := w.dice
	n.later(d.between(time.Millisecond, 2*w.intensity.gap), "", n.attack)
	fleet := []*process{w.workers[0], w.workers[1], w.workers[2], w.relays[0], w.relays[1], w.emitters[0], w.emitters[1]}
	victim := fleet[d.IntN(len(fleet))]
	if victim == nil || victim.dead {
		return
	}
	if w.holidays > 0 && d.chance(0.2) {
		w.holidays--
		n.holiday(d.between(2*time.Minute, 6*time.Minute))
		return
	}
	switch d.IntN(14) {
	case 0, 1:
		w.note("nemesis: kill %s", victim.name)
		n.kill(victim)
	case 2, 3:
		n.freeze(victim, d.between(time.Second, 3*lockTimeout))
	case 4:
		n.stop(victim)
	case 5:
		n.cut(victim, d.between(time.Second, 3*lockTimeout))
	case 6:
		n.outage(&w.databaseDown, oracle.LostDatabase, "the database", d.between(time.Second, 2*lockTimeout))
	case 7:
		n.outage(&w.notifierDown, oracle.NotifierFault, "the notifier", d.between(time.Second, time.Minute))
	case 8:
		n.mutilate()
	case 9, 10:
		n.loseAnswers(victim, d.between(time.Second, 6*lockTimeout))
	case 11:
		n.breakWay(d.between(time.Second, 3*time.Minute))
	case 12:
		n.orphan(d.between(time.Second, 3*time.Minute))
	case 13:
		n.swallow(d.between(time.Second, 3*time.Minute))
	}
}

// kill is kill -9, and a restart some time later. It may be called by a call that
// has passed the gate.
func (n nemesis) kill(p *process) {
	w := n.w
	w.faults["process killed"]++
	end := p.fault(oracle.Killed)
	p.kill()
	n.later(w.dice.between(100*time.Millisecond, lockTimeout*3/2), "", func() {
		p.restart()
		end()
	})
}

func (n nemesis) freeze(p *process, d time.Duration) {
	if p.frozen {
		return
	}
	n.w.note("nemesis: freeze %s for %s", p.name, d)
	n.w.faults["process frozen"]++
	if d > lockTimeout {
		n.w.faults["process frozen past its locks"]++
	}
	p.frozen = true
	end := p.fault(oracle.Frozen)
	n.later(d, "thaw "+p.name, func() {
		if p.frozen {
			n.w.faults["process thawed"]++
		}
		p.frozen = false
		end()
		n.w.poke()
	})
}

// holiday freezes all workers, and those that start meanwhile, for so long that
// the relay's interval has to grow.
func (n nemesis) holiday(d time.Duration) {
	w := n.w
	w.note("nemesis: no worker works for %s", d)
	w.faults["all workers frozen for minutes"]++
	w.holiday = true
	end := w.fault(oracle.Frozen, "")
	n.later(d, "the workers work again", func() {
		w.holiday = false
		end()
		w.poke()
	})
}

// stop is SIGTERM, and a restart once the process has ended.
func (n nemesis) stop(p *process) {
	n.w.note("nemesis: stop %s", p.name)
	n.w.faults["process stopped"]++
	end := p.fault(oracle.Stopped)
	p.cancel()
	n.later(time.Second, "", func() { n.awaitStop(p, end) })
}

func (n nemesis) awaitStop(p *process, end func()) {
	select {
	case <-p.stopped:
	default:
		if !p.dead { // whoever killed it meanwhile restarts it
			n.later(time.Second, "", func() { n.awaitStop(p, end) })
		} else {
			end()
		}
		return
	}
	if p.dead {
		end()
		return
	}
	p.dead = true // so that nobody harms it again
	p.restart()
	end()
}

// cut keeps one process from the database.
func (n nemesis) cut(p *process, d time.Duration) {
	if p.cut {
		return
	}
	n.w.note("nemesis: cut %s off from the database for %s", p.name, d)
	n.w.faults["process cut off from the database"]++
	p.cut = true
	n.w.tables.disconnect(p.name)
	end := p.fault(oracle.LostDatabase)
	n.later(d, "mend "+p.name, func() {
		p.cut = false
		end()
	})
}

// outage takes the database or the notifier from everybody.
func (n nemesis) outage(down *bool, kind oracle.FaultKind, what string, d time.Duration) {
	if *down {
		return
	}
	n.w.note("nemesis: %s is down for %s", what, d)
	n.w.faults["outage of "+what]++
	*down = true
	if kind == oracle.LostDatabase {
		for _, p := range n.w.everybody() {
			n.w.tables.disconnect(p.name)
		}
	}
	end := n.w.fault(kind, "")
	n.later(d, what+" is back", func() {
		*down = false
		end()
	})
}

// heal ends every fault: what was planned comes at once.
func (n nemesis) heal() {
	w := n.w
	w.attacking = false
	w.plan.hasten()
	if w.lastSilence {
		n.later(time.Second, "", n.silence)
	}
	if w.lastRefusals {
		n.later(w.dice.between(20*time.Second, time.Minute), "the last row is refused", func() { w.spoken.Store(true) })
	}
	if w.lingers {
		n.later(time.Second, "", func() { n.hunt(200) })
	}
	for _, p := range w.workers {
		if len(p.version.unknown) > 0 && !p.dead {
			n.stop(p)
		}
	}
}
