package memnotify

// Faults makes calls fail. Each function is called when a call begins, without
// any lock held and possibly by many goroutines at once. Its error becomes the
// error of the call; nil lets the call continue. A nil function never fails.
type Faults struct {
	// Publish is called before anything is queued.
	Publish func() error

	// AfterPublish is called after everything is queued: an error means a publish
	// that succeeded, whose caller does not learn it.
	AfterPublish func() error

	// Pull is called when a Pull begins, and again for every waiting Pull when Inject
	// is called.
	Pull func() error

	// Ack is called before anything is acknowledged.
	Ack func() error

	// Requeue is called before anything is requeued.
	Requeue func() error
}

// faults are the injected faults of a Notifier, guarded by its lock.
type faults struct {
	Faults
	injections int
	drop       int
	duplicate  int
}

// copies is how often the next published notification is queued.
func (f *faults) copies() int {
	if f.drop > 0 {
		f.drop--
		return 0
	}
	if f.duplicate > 0 {
		f.duplicate--
		return 2
	}
	return 1
}

// Inject replaces the faults of the notifier; Inject(Faults{}) ends them. Pulls
// that wait check the new faults, so that an outage also fails them.
func (n *Notifier) Inject(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.Faults = f
	n.faults.injections++
	for n.waiters.first != nil {
		n.waiters.wakeOne()
	}
}

// Drop makes the notifier accept and lose the next count published notifications.
// Calls add up.
func (n *Notifier) Drop(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.drop += count
}

// Duplicate makes the notifier queue the next count published notifications twice.
// Calls add up; dropped notifications are not doubled.
func (n *Notifier) Duplicate(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.duplicate += count
}

// Redeliver ends every lease and every delay at once and invalidates their ack IDs,
// so that every notification that is not acknowledged is ready. It returns how many
// leases and delays it ended.
func (n *Notifier) Redeliver() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	ended := len(n.queue.later.entries)
	for len(n.queue.later.entries) > 0 {
		n.queue.release(n.queue.later.entries[0].slot)
	}
	if n.queue.ready > 0 {
		n.waiters.wakeOne()
	}
	return ended
}

// Wipe deletes every notification, including the leased and the delayed ones, and
// returns how many there were.
func (n *Notifier) Wipe() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := n.queue.live()
	n.queue.wipe()
	return count
}

func (n *Notifier) publishFaults() (before, after func() error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return orNone(n.faults.Publish), orNone(n.faults.AfterPublish)
}

func (n *Notifier) ackFault() func() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return orNone(n.faults.Ack)
}

func (n *Notifier) requeueFault() func() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return orNone(n.faults.Requeue)
}

// checkFault calls the Pull fault once for every injection during the call.
func (p *puller) checkFault() error {
	p.n.mu.Lock()
	fault, injections := p.n.faults.Pull, p.n.faults.injections
	p.n.mu.Unlock()
	if injections == p.faultsSeen {
		return nil
	}
	p.faultsSeen = injections
	return orNone(fault)()
}

func orNone(fault func() error) func() error {
	if fault == nil {
		return func() error { return nil }
	}
	return fault
}
