package sim

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// loseAnswers has a process send to the database, and hear nothing from it: its
// calls happen. Some answers are lost at once, others never come.
func (n nemesis) loseAnswers(p *process, d time.Duration) {
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

// breakWay has one kind of calls of the notifier fail, or hang.
func (n nemesis) breakWay(d time.Duration) {
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
	w.note("nemesis: %s of the notifier %s for %s", which, how, d)
	w.faults["notifier, while the rest works: "+string(which)+" "+how]++
	broken[which] = true
	end := w.fault(faultOf(which), "")
	n.later(d, string(which)+" of the notifier works again", func() {
		delete(broken, which)
		end()
		w.poke()
	})
}

// orphan has the topic go away and come back: what is published is accepted and
// reaches nobody, and pulls find nothing new.
func (n nemesis) orphan(d time.Duration) {
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

// swallow has the notifier accept what is published, answer when it is asked how it is, and deliver
// nothing.
func (n nemesis) swallow(d time.Duration) {
	w := n.w
	if w.broken.void {
		return
	}
	w.note("nemesis: the notifier delivers nothing, and says that it is well, for %s", d)
	w.faults["notifier that delivers nothing and says that it is well"]++
	w.broken.void = true
	end := w.fault(oracle.NotifierFault, "")
	n.later(d, "the notifier delivers again", func() {
		w.broken.void = false
		end()
		w.poke()
	})
}

// forge has the notifier deliver what nobody has published: of events that are there,
// whatever they wait for, and of some that never were.
func (n nemesis) forge() {
	w := n.w
	w.note("nemesis: somebody forges notifications")
	w.faults["notifications forged"]++
	var forged []eventqueue.Notification
	for _, row := range w.tables.rows() {
		if w.dice.chance(0.5) {
			forged = append(forged, eventqueue.Notification{Event: row.ID, Canvas: row.Canvas})
		}
	}
	for _, one := range forged {
		w.add(oracle.Record{Kind: oracle.Published, Actor: "forger", Event: one.Event, Failed: true})
	}
	for i := range 1 + w.dice.IntN(3) {
		forged = append(forged, eventqueue.Notification{Event: forgedFrom + eventqueue.EventID(i), Canvas: eventqueue.CanvasID{1}})
	}
	for _, one := range forged {
		w.notifier.messages = append(w.notifier.messages, &message{notification: one, due: time.Now()})
	}
}

// silence has workers get no notifications for so long that without looking into the
// database by themselves they would break I13, or has none of their answers taken for as long.
func (n nemesis) silence() {
	w := n.w
	d := w.dice.between(silent, silent+3*time.Minute)
	end := w.fault(oracle.NotifierFault, "")
	var way string
	var done func()
	switch w.dice.IntN(7) {
	case 0:
		way, w.notifierDown = "the notifier is down", true
		done = func() { w.notifierDown = false }
	case 1:
		way, w.broken.failing[pulling] = "pulls fail", true
		done = func() { delete(w.broken.failing, pulling) }
	case 2:
		way, w.broken.hanging[pulling] = "pulls hang", true
		done = func() { delete(w.broken.hanging, pulling) }
	case 3:
		way, w.broken.void = "the notifier delivers nothing, and says that it is well", true
		done = func() { w.broken.void = false }
	case 4:
		way, w.broken.failing[answering] = "no answer is taken", true
		done = func() { delete(w.broken.failing, answering) }
	case 5:
		way, w.broken.hanging[answering] = "answers hang", true
		done = func() { delete(w.broken.hanging, answering) }
	default:
		way, w.broken.orphan = "the subscription has no topic", true
		done = func() { w.broken.orphan = false }
	}
	w.note("nemesis: %s for %s", way, d)
	w.faults["no notification, or no answer to any, for minutes: "+way]++
	n.later(d, "notifications again", func() {
		w.spoken.Store(true)
		done()
		end()
		w.poke()
	})
}

// mutilate has the notifier forget everything, or hand everything out again.
func (n nemesis) mutilate() {
	defer n.w.fault(oracle.NotifierFault, "")()
	if n.w.forges && n.w.dice.chance(0.5) {
		n.forge()
		return
	}
	if n.w.dice.chance(0.5) {
		n.w.note("nemesis: the notifier forgets everything")
		n.w.faults["notifier wiped"]++
		n.w.notifier.wipe()
		return
	}
	n.w.note("nemesis: the notifier hands everything out again")
	n.w.faults["notifier handed everything out again"]++
	n.w.notifier.redeliver()
}
