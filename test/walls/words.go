package walls

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// RetiredWord is a word, in its forms, that the project no longer uses.
type RetiredWord struct {
	Forms []string
	Write string
	Prose bool // the word has no other meaning in prose, so that pages and help texts may not have it either
}

// Retired is the table in docs/glossary.md under "Words that are not used".
var Retired = []RetiredWord{
	{[]string{"bell", "bells", "doorbell", "doorbells"}, "notifier", true},
	{[]string{"ring", "rings", "ringing", "rung"}, "notify, publish; of files that use each other: cycle", true},
	{[]string{"unheard"}, "lost", true},
	{[]string{"broker", "brokers"}, "notifier, Pub/Sub", true},
	{[]string{"owe", "owed", "owes", "owing"}, "pending", true},
	{[]string{"look", "looks", "looked"}, "claim, check, query", false},
	{[]string{"turn", "turns"}, "ordering group, advance", false},
	{[]string{"line", "lines"}, "ordering group", false},
	{[]string{"finish", "finished", "finishes"}, "complete, completion", false},
	{[]string{"settle", "settled", "settles"}, "agree, finalize, complete", false},
	{[]string{"announce", "announced", "announces"}, "notify", false},
	{[]string{"mailbox", "mailboxes"}, "batcher", true},
	{[]string{"allowance", "allowances"}, "budget", false},
	{[]string{"patience"}, "lock wait, maximum wait", true},
	{[]string{"tell", "teller", "tells", "told"}, "report", false},
	{[]string{"say", "says", "said"}, "report", false},
	{[]string{"judge", "judges", "judgement"}, "check, decide", false},
	{[]string{"keep", "keeps", "kept"}, "retain", false},
	{[]string{"forget", "forgets", "forgot"}, "delete, lose", false},
	{[]string{"mend", "mends", "mended"}, "repair, correct", true},
	{[]string{"brake", "brakes"}, "backpressure", true},
	{[]string{"court"}, "checker", true},
	{[]string{"excuse", "excuses"}, "permitted cause", true},
	{[]string{"elder", "elders"}, "long-lived", true},
	{[]string{"chore", "chores"}, "maintenance", true},
}

// Unclear are phrases that comments, log texts and error texts of the packages must not have, and what to write.
var Unclear = map[string]string{
	"somebody":        "the identity, program or transaction that is meant",
	"cost itself":     "what is not affected",
	"costs itself":    "what is not affected",
	"cost themselves": "what is not affected",
}

// Replacement returns what to write instead of the first retired word of a name in camelCase
// or snake_case, or of a short text; empty if it has none.
func Replacement(name string) string {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		for _, part := range camelCase(part) {
			for _, word := range Retired {
				if slices.Contains(word.Forms, strings.ToLower(part)) {
					return word.Write
				}
			}
		}
	}
	return ""
}

// camelCase splits HTTPBellURL into HTTP, Bell and URL.
func camelCase(name string) []string {
	var parts []string
	letters, begin := []rune(name), 0
	for i := 1; i < len(letters); i++ {
		if unicode.IsUpper(letters[i]) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			parts, begin = append(parts, string(letters[begin:i])), i
		}
	}
	return append(parts, string(letters[begin:]))
}

// RetiredProse returns the retired words of a text that have no other meaning in prose, each with its line.
func RetiredProse(text string) []string {
	var found []string
	for _, word := range Retired {
		if !word.Prose {
			continue
		}
		pattern := regexp.MustCompile(`(?i)\b(` + strings.Join(word.Forms, "|") + `)\b`)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[0]], "\n")
			found = append(found, fmt.Sprintf("%d: %q is a retired word: write %s (docs/glossary.md)", line, text[at[0]:at[1]], word.Write))
		}
	}
	return found
}
