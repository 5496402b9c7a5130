package printing

import "fmt"

// Plural counts things: 1 event, 2 events.
func Plural[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
