package pgnotify

// wakeup records that the table should be polled. It holds at most one token; signals that
// no pull has received yet are one. A pull polls after it has received the token, and so
// sees all rows that were committed before the signal. A poll that may have left rows
// behind signals again.
type wakeup chan struct{}

func newWakeup() wakeup { return make(wakeup, 1) }

// signal adds the token if there is none. It never blocks.
func (b wakeup) signal() {
	select {
	case b <- struct{}{}:
	default:
	}
}
