package pgnotify

// bell remembers that the table should be looked into. It wakes one pull for
// each ring, and rings that nobody has answered yet are one. Whoever answers it
// looks after that, so that what was committed before the ring is seen; and a
// look that leaves something behind rings for the next one.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring never blocks.
func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
