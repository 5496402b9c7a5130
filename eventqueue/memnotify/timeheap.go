package memnotify

import "time"

// hidden is a notification that no pull gets before due.
type hidden struct {
	due  time.Duration // since the notifier was made
	slot uint32
}

// timeHeap is a binary min-heap by due. It reports the index of each entry to its
// slot, so that a lease can end early or move in O(log n). The heap of the standard
// library would box each entry.
type timeHeap struct {
	entries []hidden
	moved   func(slot uint32, at int)
}

func (h *timeHeap) push(entry hidden) {
	h.entries = append(h.entries, entry)
	h.up(len(h.entries) - 1)
}

// remove takes out the entry at the given place.
func (h *timeHeap) remove(at int) {
	last := len(h.entries) - 1
	moving := h.entries[last]
	h.entries = h.entries[:last]
	if at == last {
		return
	}
	h.entries[at] = moving
	h.fix(at)
}

// move gives the entry at the given place another due.
func (h *timeHeap) move(at int, due time.Duration) {
	h.entries[at].due = due
	h.fix(at)
}

func (h *timeHeap) fix(at int) {
	if at > 0 && h.entries[at].due < h.entries[(at-1)/2].due {
		h.up(at)
		return
	}
	h.down(at)
}

func (h *timeHeap) up(at int) {
	entry := h.entries[at]
	for at > 0 {
		parent := (at - 1) / 2
		if h.entries[parent].due <= entry.due {
			break
		}
		h.put(at, h.entries[parent])
		at = parent
	}
	h.put(at, entry)
}

func (h *timeHeap) down(at int) {
	entry := h.entries[at]
	for {
		child := 2*at + 1
		if child >= len(h.entries) {
			break
		}
		if right := child + 1; right < len(h.entries) && h.entries[right].due < h.entries[child].due {
			child = right
		}
		if entry.due <= h.entries[child].due {
			break
		}
		h.put(at, h.entries[child])
		at = child
	}
	h.put(at, entry)
}

func (h *timeHeap) put(at int, entry hidden) {
	h.entries[at] = entry
	h.moved(entry.slot, at)
}
