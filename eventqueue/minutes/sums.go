package minutes

import (
	"fmt"
	"strings"
)

// SumsSQL are the sums of the rows of event_minutes m, as the columns emitted to oldest_due of event_minute_totals. Sums of
// single elements of a histogram cost a tenth of grouping by element, and sums of floating-point numbers, which are
// exact up to 2^53, less than those of bigint, which are numeric.
func SumsSQL() string {
	elements := make([]string, Buckets)
	for i := range elements {
		elements[i] = fmt.Sprintf("coalesce(sum(m.waits[%d]::float8), 0)::bigint", i+1)
	}
	return `coalesce(sum(m.emitted), 0)::bigint AS emitted, coalesce(sum(m.completed), 0)::bigint AS completed, coalesce(sum(m.failed), 0)::bigint AS failed,
    coalesce(sum(m.retried), 0)::bigint AS retried, coalesce(sum(m.cancelled), 0)::bigint AS cancelled,
    ARRAY[` + strings.Join(elements, ", ") + `] AS waits, sum(m.pending)::bigint AS pending, max(m.oldest_due) AS oldest_due`
}
