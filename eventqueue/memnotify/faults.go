package memnotify

// Faults makes calls fail. Each function is asked when a call begins, without
// any lock held and possibly by many goroutines at once; its error becomes the
// error of the call, and nil lets the call go on. A nil function never fails.
type Faults struct {
	// Publish is asked before anything is queued.
	Publish func() error

	// AfterPublish is asked when everything is queued: an error is a publish that
	// succeeded without its caller being told.
	AfterPublish func() error

	// Pull is asked when a Pull begins, and once more, when Inject is called, by
	// every Pull that waits.
	Pull func() error

	// Ack is asked before anything is acknowledged.
	Ack func() error

	// Requeue is asked before anything is requeued.
	Requeue func() error
}

// faults is what a Notifier knows of the faults to come; its lock guards it.
type faults struct {
	Faults
	injections int
	drop       int
	duplicate  int
}

// copies says how often the next published notification is to be queued.
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
// that wait are asked again, so that a broker that breaks down breaks them, too.
func (n *Notifier) Inject(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.Faults = f
	n.faults.injections++
	for n.waiters.first != nil {
		n.waiters.wakeOne()
	}
}

// Drop has the next count published notifications accepted and lost. Calls add
// up.
func (n *Notifier) Drop(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.drop += count
}

// Duplicate has the next count published notifications queued twice. Calls add
// up; what is dropped is not doubled.
func (n *Notifier) Duplicate(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.duplicate += count
}

// Redeliver ends every lease and every delay at once and voids their ack IDs, so
// that everything which is not acknowledged is ready. It returns how many leases
// and delays it ended.
func (n *Notifier) Redeliver() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	ended := len(n.broker.later.entries)
	for len(n.broker.later.entries) > 0 {
		n.broker.release(n.broker.later.entries[0].slot)
	}
	if n.broker.ready > 0 {
		n.waiters.wakeOne()
	}
	return ended
}

// Wipe forgets every notification, the leased and the delayed ones as well, and
// returns how many there were.
func (n *Notifier) Wipe() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := n.broker.live()
	n.broker.wipe()
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

// checkFault asks the Pull fault once for every injection that the puller lives
// through.
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
