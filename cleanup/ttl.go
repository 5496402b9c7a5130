package cleanup

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// TTL is how long a publication stays, at the least, before a later one of its key
// cleans it up. The zero value is Replace.
//
// As text it is a duration of whole numbers with units, the largest first and
// each at most once, or "replace": 3d12h, 1w, 90s, 1h30m500ms. The units are
// w (7 days), d (24 hours), h, m, s and ms.
type TTL time.Duration

// Replace is a TTL of 0: the next publication replaces this one.
const Replace TTL = 0

const replaceText = "replace"

var units = []struct {
	name string
	size time.Duration
}{
	{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute},
	{"s", time.Second}, {"ms", time.Millisecond},
}

var errTTLHelp = errors.New(`write a duration such as 3d12h (units w, d, h, m, s, ms), or "replace"`)

// ParseTTL reads a TTL in the form that TTL describes. Its error says what is wrong and
// what would be right.
func ParseTTL(text string) (TTL, error) {
	switch text {
	case "":
		return 0, fmt.Errorf("ttl is empty: %w", errTTLHelp)
	case replaceText:
		return Replace, nil
	}
	var total time.Duration
	last := -1 // index in units of the previous unit
	for rest := text; rest != ""; {
		number, unit, tail, err := cutTerm(rest)
		if err != nil {
			return 0, fmt.Errorf("ttl %q: %w: %w", text, err, errTTLHelp)
		}
		if unit <= last {
			return 0, fmt.Errorf("ttl %q: %s stands after %s: write the largest unit first, and each once",
				text, units[unit].name, units[last].name)
		}
		if number > (math.MaxInt64-int64(total))/int64(units[unit].size) {
			return 0, fmt.Errorf("ttl %q is too long: the limit is 292 years", text)
		}
		total += time.Duration(number) * units[unit].size
		last, rest = unit, tail
	}
	return TTL(total), nil
}

// cutTerm cuts a number and its unit off a text. unit is the index in units.
func cutTerm(text string) (number int64, unit int, tail string, err error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits == 0 {
		return 0, 0, "", fmt.Errorf("%q does not begin with a digit", text)
	}
	letters := digits
	for letters < len(text) && (text[letters] < '0' || text[letters] > '9') {
		letters++
	}
	name := text[digits:letters]
	if name == "" {
		return 0, 0, "", fmt.Errorf("%s has no unit", text[:digits])
	}
	for i, u := range units {
		if u.name == name {
			if number, err = strconv.ParseInt(text[:digits], 10, 64); err != nil {
				number = math.MaxInt64 // the caller refuses it as too long
			}
			return number, i, text[letters:], nil
		}
	}
	return 0, 0, "", fmt.Errorf("%q is not a unit", name)
}

// String returns a text for ParseTTL, without weeks: 3d12h, or replace. It leaves out
// fractions of a millisecond.
func (t TTL) String() string {
	rest := time.Duration(t)
	if rest < time.Millisecond {
		return replaceText
	}
	var b strings.Builder
	for _, u := range units[1:] {
		if n := rest / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			rest -= n * u.size
		}
	}
	return b.String()
}

// Validate refuses a negative ttl, and one that String could not write.
func (t TTL) Validate() error {
	switch {
	case t < 0:
		return fmt.Errorf("ttl is %s: it must not be negative", time.Duration(t))
	case time.Duration(t)%time.Millisecond != 0:
		return fmt.Errorf("ttl is %s: it must be whole milliseconds", time.Duration(t))
	default:
		return nil
	}
}

// MarshalText returns the text of String.
func (t TTL) MarshalText() ([]byte, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return []byte(t.String()), nil
}

// UnmarshalText is ParseTTL for YAML and other encodings.
func (t *TTL) UnmarshalText(text []byte) (err error) {
	*t, err = ParseTTL(string(text))
	return err
}

// UnmarshalJSON is ParseTTL for a JSON string.
func (t *TTL) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return fmt.Errorf("ttl is null: %w", errTTLHelp)
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("ttl is %s, which is not a string: %w", text, errTTLHelp)
	}
	return t.UnmarshalText([]byte(s))
}
