package worker

import (
	"fmt"
	"strings"

	"go.uber.org/zap"

	"eventsv2/internal/invoke"
)

// MaxLastErrorBytes is how much of an error event_log, the failed attempts and the log retain.
const MaxLastErrorBytes = 8 << 10

// What a handler says of its failure may be of any length. A line of the log has as much of it as the row.

// shownError are the fields of an error of a handler's.
func shownError(err error) []zap.Field {
	text, _ := textOf(err)
	fields := []zap.Field{zap.String("error", storable(text))}
	if _, is := err.(fmt.Formatter); is {
		if verbose := fmt.Sprintf("%+v", err); verbose != text {
			fields = append(fields, zap.String("errorVerbose", storable(verbose)))
		}
	}
	return fields
}

// shownValue is the field of a value that a handler has panicked with.
func shownValue(key string, value any) zap.Field {
	if text := fmt.Sprint(value); len(text) > MaxLastErrorBytes {
		return zap.String(key, storable(text))
	}
	return zap.Any(key, value)
}

// textOf is the text of an error, also of one whose Error method panics.
func textOf(err error) (text string, ok bool) {
	var panicked error
	func() {
		defer invoke.Recovered(&panicked)
		text = err.Error()
	}()
	if panicked != nil {
		return "the handler returned an error that cannot be printed: " + panicked.Error(), false
	}
	return text, true
}

// storable makes any text fit a text column, and event_log.
func storable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > MaxLastErrorBytes {
		s = strings.ToValidUTF8(s[:MaxLastErrorBytes], "") // no half rune at the end
	}
	return s
}
