// Package refusal goes around rows that the database refuses to write, because of a constraint, a
// trigger or a policy, for example, so that such a row stops no other (I15). A statement for many
// rows that is refused is sent by halves until the refused row is alone. That row is named in the
// log and left out, and from then on it is tried by itself, in growing intervals.
package refusal

import "eventsv2/internal/sqlstate"

// Refused is an item that is refused, and why.
type Refused[T any] struct {
	Item T
	Err  error
}

// Halve calls write with all the items of each part. When the database refuses that, or the emit of
// it is refused (Emit), nothing of it was written, and Halve calls write with each half. It returns the items that were refused alone;
// all others were written. After an error, which is none of a single item, some of the items were
// written.
//
// Before the first item is blamed although nothing was written yet, write is called with no items.
// If that is refused as well, the cause is the table or a right, for example, and Halve returns the
// refusal as an error.
func Halve[T any](write func([]T) error, parts ...[]T) ([]Refused[T], error) {
	h := halver[T]{write: write}
	for _, items := range parts {
		if len(items) == 0 {
			continue
		}
		if err := h.on(items); err != nil {
			return h.refused, err
		}
	}
	return h.refused, nil
}

type halver[T any] struct {
	write    func([]T) error
	answered bool // by anything but a refusal
	refused  []Refused[T]
}

func (h *halver[T]) on(items []T) error {
	err := h.write(items)
	switch {
	case err == nil:
		h.answered = true
		return nil
	case !sqlstate.Refused(err) && !IsEmit(err):
		return err
	case len(items) > 1:
		half := len(items) / 2
		if err := h.on(items[:half]); err != nil {
			return err
		}
		return h.on(items[half:])
	case !h.answered && h.write(nil) != nil:
		return err
	}
	h.answered = true
	h.refused = append(h.refused, Refused[T]{items[0], err})
	return nil
}
