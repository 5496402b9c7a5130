package oracle

import (
	"slices"
	"time"
)

// checkCrons is I10.
func (j *judgement) checkCrons() {
	type slot struct {
		cron int64
		at   time.Time
	}
	emitted := map[slot]*Record{}
	for _, r := range j.slots {
		key := slot{r.Cron, r.Slot.UTC()}
		if first := emitted[key]; first != nil {
			j.accuse(&life{id: r.Event, records: []*Record{first, r}}, "I10", "cron %d: the slot was emitted twice", r.Cron)
			continue
		}
		emitted[key] = r
		if r.At.Before(r.Slot) {
			j.accuse(&life{id: r.Event, records: []*Record{r}}, "I10", "cron %d: emitted %s before its slot", r.Cron, r.Slot.Sub(r.At))
		}
		if l := j.lives[r.Event]; l.emitted == nil {
			j.accuse(l, "I10", "cron %d: a slot is recorded and its event was not emitted", r.Cron)
		}
	}
	for i := range j.Crons {
		c := &j.Crons[i]
		for n, at := range c.Slots {
			if emitted[slot{c.ID, at.UTC()}] == nil && !j.mayMiss(c, n) {
				j.accuse(&life{}, "I10", "cron %d: slot %s was left out, which policy %s does not allow", c.ID,
					at.UTC().Format(time.RFC3339), c.Policy)
			}
		}
	}
	for _, r := range j.slots {
		c := slices.IndexFunc(j.Crons, func(c Cron) bool { return c.ID == r.Cron })
		if c >= 0 && r.Slot.Before(j.lastSlot(c)) && !slices.ContainsFunc(j.Crons[c].Slots, r.Slot.Equal) {
			j.accuse(&life{id: r.Event, records: []*Record{r}}, "I10", "cron %d: emitted for a time that is no slot", r.Cron)
		}
	}
}

func (j *judgement) lastSlot(cron int) time.Time {
	slots := j.Crons[cron].Slots
	if len(slots) == 0 {
		return time.Time{}
	}
	return slots[len(slots)-1]
}

// mayMiss reports whether a slot may be left out: never under All; else when there
// was a fault between it and the next slot, and not the last one under Latest.
func (j *judgement) mayMiss(c *Cron, n int) bool {
	last := n == len(c.Slots)-1
	if c.Policy == All || c.Policy == Latest && last {
		return false
	}
	until := j.Final.At
	if !last {
		until = c.Slots[n+1]
	}
	return slices.ContainsFunc(j.Faults, func(f Fault) bool {
		return f.Kind != NotifierFault && f.Kind != AnswerFault && f.Event == 0 && f.overlaps(c.Slots[n], until)
	})
}
