package worker

import (
	"fmt"

	"go.uber.org/zap"
)

// What a handler says of its failure may be of any length. A line of the log has as much of it as the row.

// shownError are the fields of an error of a handler's.
func shownError(err error) []zap.Field {
	text, _ := textOf(err)
	fields := []zap.Field{zap.String("error", storable(text))}
	if _, is := err.(fmt.Formatter); is { //nolint:errorlint // what zap.Error adds for such an error itself
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
