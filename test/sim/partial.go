package sim

import (
	"time"

	"eventsv2/test/oracle"
)

// way is a kind of calls of the broker that may fail while the others work.
type way string

const (
	publishing way = "Publish"
	pulling    way = "Pull"
	answering  way = "answers" // Ack, Requeue and the extension of leases
)

func wayOf(c *call) way {
	switch way(c.op) {
	case publishing, pulling:
		return way(c.op)
	default:
		return answering
	}
}

// partial is what is wrong with a peer that is there. Guarded by the gate's lock.
type partial struct {
	failing map[way]bool // calls of the broker that fail
	hanging map[way]bool // and those that are accepted and never answered
	orphan  bool         // the topic of the subscription is gone: publishes are accepted, and reach nobody
}

// isPartlyDown reports whether a call cannot reach the broker though others can.
func (w *world) isPartlyDown(c *call) bool {
	if c.to != broker || c.op == opCheck {
		return false
	}
	if w.broken.hanging[wayOf(c)] {
		c.hangs = true
	}
	return w.broken.hanging[wayOf(c)] || w.broken.failing[wayOf(c)]
}

// loseAnswers has a process send to the database, and hear nothing from it: its
// calls happen. Some answers are lost at once, others never come.
func (n *nemesis) loseAnswers(p *process, d time.Duration) {
	if p.deaf {
		return
	}
	n.w.note("nemesis: %s does not hear the database for %s", p.name, d)
	n.w.faults["answers of the database lost, one way, for long"]++
	p.deaf = true
	end := p.fault(oracle.LostDatabase)
	n.later(d, p.name+" hears again", func() {
		p.deaf = false
		end()
	})
}

// breakWay has one kind of calls of the broker fail, or hang.
func (n *nemesis) breakWay(d time.Duration) {
	w := n.w
	ways := []way{publishing, pulling, answering}
	which := ways[w.dice.IntN(len(ways))]
	broken, how := w.broken.failing, "fails"
	if w.dice.chance(0.5) {
		broken, how = w.broken.hanging, "hangs"
	}
	if broken[which] {
		return
	}
	w.note("nemesis: %s of the broker %s for %s", which, how, d)
	w.faults["broker, while the rest works: "+string(which)+" "+how]++
	broken[which] = true
	end := w.fault(oracle.NotifierFault, "")
	n.later(d, string(which)+" of the broker works again", func() {
		delete(broken, which)
		end()
		w.poke()
	})
}

// orphan has the topic go away and come back: what is published is accepted and
// reaches nobody, and pulls find nothing new.
func (n *nemesis) orphan(d time.Duration) {
	w := n.w
	if w.broken.orphan {
		return
	}
	w.note("nemesis: the subscription has no topic for %s", d)
	w.faults["subscription without its topic"]++
	w.broken.orphan = true
	end := w.fault(oracle.NotifierFault, "")
	n.later(d, "the subscription has its topic again", func() {
		w.broken.orphan = false
		end()
	})
}
