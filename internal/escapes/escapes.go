// Package escapes finds escapes in JSON texts that Postgres, or a strict reader, refuses.
package escapes

import (
	"fmt"
	"strconv"
)

// Check finds \u0000 and surrogates without their other half. The value
// is valid JSON, so a backslash stands in a string only.
func Check(value []byte) error {
	for i := 0; i < len(value); i++ {
		if value[i] != '\\' {
			continue
		}
		i++
		if value[i] != 'u' {
			continue
		}
		unit := hex4(value[i+1:])
		at := i - 1
		i += 4
		switch {
		case unit == 0:
			return fmt.Errorf(`holds \u0000 at byte %d, which Postgres cannot store as text`, at)
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return fmt.Errorf("holds half a surrogate pair at byte %d", at)
		case unit >= 0xD800 && unit <= 0xDBFF:
			if !lowSurrogateAt(value, i+1) {
				return fmt.Errorf("holds half a surrogate pair at byte %d", at)
			}
			i += 6
		}
	}
	return nil
}

func lowSurrogateAt(value []byte, i int) bool {
	if len(value) < i+6 || value[i] != '\\' || value[i+1] != 'u' {
		return false
	}
	low := hex4(value[i+2:])
	return low >= 0xDC00 && low <= 0xDFFF
}

func hex4(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		panic("escapes: \\u without four hexadecimal digits in valid JSON")
	}
	return n
}
