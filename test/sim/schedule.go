package sim

import (
	"slices"
	"time"
)

// schedule is what happens at a time: faults, and what follows from them. It is used by the
// controller, and by one who has passed the gate at a time.
type schedule struct{ deeds []deed }

// deed is something that happens at a time.
type deed struct {
	at   time.Time
	what string
	do   func()
}

// quiescence names the deed that looks whether the queue has come to rest.
const quiescence = "look whether the queue is at rest"

// later plans a deed.
func (s *schedule) later(after time.Duration, what string, do func()) {
	s.deeds = append(s.deeds, deed{time.Now().Add(after), what, do})
}

// due is the index of the deed that comes next, the first planned of several.
func (s *schedule) due() int {
	first := 0
	for i := range s.deeds {
		if s.deeds[i].at.Before(s.deeds[first].at) {
			first = i
		}
	}
	return first
}

// next is when there is something to do.
func (s *schedule) next() time.Time {
	if len(s.deeds) == 0 {
		return time.Now().Add(time.Hour)
	}
	return s.deeds[s.due()].at
}

// take removes a deed whose time has come; false means that there is none.
func (s *schedule) take() (deed, bool) {
	if len(s.deeds) == 0 {
		return deed{}, false
	}
	i := s.due()
	d := s.deeds[i]
	if d.at.After(time.Now()) {
		return deed{}, false
	}
	s.deeds = slices.Delete(s.deeds, i, i+1)
	return d, true
}

// hasten brings all deeds but the looks for quiescence forward to now.
func (s *schedule) hasten() {
	for i := range s.deeds {
		if s.deeds[i].at.After(time.Now()) && s.deeds[i].what != quiescence {
			s.deeds[i].at = time.Now()
		}
	}
}
