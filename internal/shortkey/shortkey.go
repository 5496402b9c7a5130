// Package shortkey makes keys of texts that others have chosen.
package shortkey

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unicode"
)

// Of is a text as a key of at most so many bytes. Of one that cannot be a key, because it is longer, is not UTF-8 or holds
// control characters, it is the hash, which has 71 bytes.
func Of(text string, most int) string {
	if len(text) <= most && !slices.ContainsFunc([]rune(text), func(c rune) bool { return c == unicode.ReplacementChar || unicode.IsControl(c) }) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
