package check

// emits checks what emitters know, and what handlers emitted.
func (c *checker) emits() {
	for tag, got := range c.Acknowledgements {
		switch n := len(c.tags[tag]); {
		case n > 1:
			c.find(nil, other, "the event %q was emitted once and entered %d times", tag, n)
		case got == Accepted && n == 0:
			c.find(nil, lost, "the event %q was accepted and never entered", tag)
		case got == Undone && n > 0:
			c.find(nil, other, "the event %q entered though its transaction was rolled back", tag)
		case got == Repeated && n > 0:
			c.find(nil, unique, "the event %q entered though its emit was taken for a repeat", tag)
		}
	}
	for tag := range c.children {
		if n := len(c.tags[tag]); n != 1 {
			c.find(nil, other, "the event %q was emitted in a transaction that committed and entered %d times", tag, n)
		}
	}
	for tag, traces := range c.tags {
		if _, emitted := c.Acknowledgements[tag]; !emitted && !c.children[tag] {
			c.find(traces[0], other, "nobody emitted %q, or its transaction did not commit", tag)
		}
	}
}
