package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"eventsv2/internal/humantime"
)

// at is a time and how long ago it was.
func at(t, now time.Time) string { return humantime.TimeAndAge(t, now) }

// firstLine is the beginning of an error, on one line.
func firstLine(text string) string {
	const most = 200
	line, _, cut := strings.Cut(text, "\n")
	if len(line) > most {
		line, cut = strings.ToValidUTF8(line[:most], ""), true
	}
	if cut {
		return line + " …"
	}
	return strings.TrimRight(line, ". ") // a sentence goes on, or ends, after it
}

// printable quotes a name that a terminal would not show as it is.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// quoted is a name as a shell has to be given it.
func quoted(name string) string {
	if shown := printable(name); shown != name { // the shell knows the same escapes
		return "$'" + strings.ReplaceAll(strings.ReplaceAll(shown[1:len(shown)-1], `\"`, `"`), "'", `\'`) + "'"
	}
	if strings.ContainsAny(name, " '\"\\$`;&|<>()*?[]{}!#~") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

func claims(n int32) string { return plural(int(n), "claim") }

func times(n int) string { return plural(n, "time") }

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
