// Package article puts the indefinite article before words that messages have from elsewhere: names of types, and of kinds of values.
package article

import (
	"fmt"
	"strings"
)

// With returns a word with its article: "a string", "an int", "a uint". It goes by letters, which suffices for such names.
func With(word any) string {
	text := fmt.Sprint(word)
	if strings.IndexAny(text, "aeioAEIO") == 0 || strings.HasPrefix(text, "un") {
		return "an " + text
	}
	return "a " + text
}
