package main

// emits checks what emitters know, and what handlers emitted.
func (c *checker) emits() {
	for tag, got := range c.acknowledgements {
		switch n := len(c.tags[tag]); {
		case n > 1:
			c.find(nil, other, "the event %q was emitted once and entered %d times", tag, n)
		case got == accepted && n == 0:
			c.find(nil, lost, "the event %q was accepted and never entered", tag)
		case got == undone && n > 0:
			c.find(nil, other, "the event %q entered though its transaction was rolled back", tag)
		case got == repeated && n > 0:
			c.find(nil, unique, "the event %q entered though its emit was taken for a repeat", tag)
		}
	}
	for tag := range c.children {
		if n := len(c.tags[tag]); n != 1 {
			c.find(nil, other, "the event %q was emitted in a transaction that committed and entered %d times", tag, n)
		}
	}
	for tag, stories := range c.tags {
		if _, emitted := c.acknowledgements[tag]; !emitted && !c.children[tag] {
			c.find(stories[0], other, "nobody emitted %q, or its transaction did not commit", tag)
		}
	}
}
