package memnotify

// fifo is a first-in-first-out queue that grows by doubling and never shrinks.
type fifo struct {
	entries []leaseRef // its length is 0 or a power of two
	head    int
	count   int
}

func (r *fifo) push(ref leaseRef) {
	if r.count == len(r.entries) {
		r.grow()
	}
	r.entries[(r.head+r.count)&(len(r.entries)-1)] = ref
	r.count++
}

// pop removes and returns the oldest entry; the fifo must not be empty.
func (r *fifo) pop() leaseRef {
	ref := r.entries[r.head]
	r.head = (r.head + 1) & (len(r.entries) - 1)
	r.count--
	return ref
}

func (r *fifo) grow() {
	bigger := make([]leaseRef, max(64, 2*len(r.entries)))
	copied := copy(bigger, r.entries[r.head:])
	copy(bigger[copied:], r.entries[:r.head])
	r.entries, r.head = bigger, 0
}

func (r *fifo) clear() { r.head, r.count = 0, 0 }
