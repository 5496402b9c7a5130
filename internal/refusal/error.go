package refusal

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
)

// Error is returned beside a result, which counts: the database refuses to write the rows of some
// events, and all others were written. It has at least one row, Advance or Rest.
type Error struct {
	Rows []Row

	// Advance is why ordering groups did not advance after the events before were written, whichever
	// rows they may have waited for. The relay advances them. nil: no other error occurred.
	Advance error

	// Rest is why what a method does after the result was not done, or not all of it. The caller does
	// it again sooner or later. nil: all was done.
	Rest error
}

// Row is the row of an event that the database refuses to write.
type Row struct {
	Event fmt.Stringer
	Wait  time.Duration // until it is tried again
	Err   error
}

// Error names the first row, or what failed if there is none.
func (e *Error) Error() string {
	switch {
	case len(e.Rows) > 0:
		return fmt.Sprintf("the database refuses to write %d rows, the first of event %s: %v", len(e.Rows), e.Rows[0].Event, e.Rows[0].Err)
	case e.Advance != nil:
		return fmt.Sprintf("could not advance ordering groups: %v", e.Advance)
	default:
		return fmt.Sprintf("could not do the rest: %v", e.Rest)
	}
}

// Is reports whether an error is an Error.
func Is(err error) bool {
	var refused *Error
	return errors.As(err, &refused)
}

// Unanswered returns the error of a statement that may have committed without its answer: err, or what an Error has left
// undone; nil if there is none.
func Unanswered(err error) error {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Rest
	}
	return err
}

// Report logs what an Error has, and returns nil for it; any other error it returns.
func Report(log *zap.Logger, err error) error {
	var refused *Error
	if !errors.As(err, &refused) {
		return err
	}
	for _, row := range refused.Rows {
		log.Error("the database refuses to write the row of this event, and of no other for it; it is tried again by itself, "+
			"in growing intervals; check its row, and the triggers and constraints of its table",
			zap.Stringer(logkey.Event, row.Event), zap.Duration(logkey.Wait, row.Wait), zap.Error(row.Err))
	}
	if refused.Advance != nil {
		log.Warn("the ends of events are written, but the ordering groups behind them could not advance; the relay advances them", zap.Error(refused.Advance))
	}
	if refused.Rest != nil {
		log.Warn("only a part of a search for notifications was done; it is done again soon: if this goes on, see that Postgres can be reached, and the rights of this program's role",
			zap.Error(refused.Rest))
	}
	return nil
}
