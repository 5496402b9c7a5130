// Package spelling finds what was meant by a name that does not exist.
package spelling

import "strings"

// maxMistakes is how many mistakes a name of any length may have.
const maxMistakes = 3

// Near returns how many mistakes make name of meant, and whether they are so few that meant may have been meant: one
// for every four letters, and three at most. Capital letters are no mistakes.
func Near(name, meant string) (mistakes int, near bool) {
	name, meant = strings.ToLower(name), strings.ToLower(meant)
	most := min(len(meant)/4, maxMistakes)
	if name == meant {
		return 0, true
	}
	if len(name)-len(meant) > most || len(meant)-len(name) > most {
		return 0, false
	}
	mistakes = Mistakes(name, meant)
	return mistakes, mistakes <= most
}

// Mistakes returns how many letters of a are missing, too many, wrong, or have changed places with the next, if b was
// meant. It takes time in proportion to the product of their lengths.
func Mistakes(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
