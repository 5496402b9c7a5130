package refusal

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
)

// Error is returned beside a result, which counts: the database refuses to write the rows of some
// events, and all others were written.
type Error struct {
	Rows []Row // at least one
}

// Row is the row of an event that the database refuses to write.
type Row struct {
	Event fmt.Stringer
	Wait  time.Duration // until it is tried again
	Err   error
}

// Error names the first row.
func (e *Error) Error() string {
	return fmt.Sprintf("the database refuses to write %d rows, the first of event %s: %v", len(e.Rows), e.Rows[0].Event, e.Rows[0].Err)
}

// Is reports whether an error is an Error.
func Is(err error) bool {
	var refused *Error
	return errors.As(err, &refused)
}

// Report logs the rows of an Error, and returns nil for it; any other error it returns.
func Report(log *zap.Logger, err error) error {
	var refused *Error
	if !errors.As(err, &refused) {
		return err
	}
	for _, row := range refused.Rows {
		log.Error("the database refuses to write the row of this event, and of no other for it; it is tried again by itself, "+
			"in growing intervals; look at its row, and at what else is on its table",
			zap.Stringer(logkey.Event, row.Event), zap.Duration(logkey.Wait, row.Wait), zap.Error(row.Err))
	}
	return nil
}
