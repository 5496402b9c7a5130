package memnotify

// waiter is a Pull that waits. It is woken at most once each time that it joins.
type waiter struct {
	wake       chan struct{} // holds one token, so that waking never blocks
	prev, next *waiter
	joined     bool
}

// waiters is a list of the Pulls that wait, oldest first.
type waiters struct {
	first, last *waiter
}

func (l *waiters) join(w *waiter) {
	if w.joined {
		return
	}
	w.joined = true
	w.prev, w.next = l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *waiters) leave(w *waiter) {
	if !w.joined {
		return
	}
	w.joined = false
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}

// wakeOne wakes the oldest; without any it does nothing.
func (l *waiters) wakeOne() {
	w := l.first
	if w == nil {
		return
	}
	l.leave(w)
	select {
	case w.wake <- struct{}{}:
	default: // an earlier token, not yet received, wakes it as well
	}
}
