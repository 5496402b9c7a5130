package setup

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"eventsv2/internal/spelling"
)

// A variable whose name is misspelled would be ignored, and the program would run with a default that
// was not intended. So a name that differs from one of ours as a mistake in typing does is refused. An
// environment has variables of the platform, of other programs, and secrets of any name: so a mistake is
// sought within one word, and only where the word is long enough to be recognised.

// prefixes are prefixes that users might put before our names, which have none.
var prefixes = []string{"EVENTSV2_", "EVENTS_V2_"}

// shared are names of ours that other programs have as well, or nearly: their plurals, and what is written in
// lower case, may belong to another program.
var shared = map[string]bool{
	"DATABASE_URL": true, "PORT": true, "NOTIFIER": true, "DASHBOARD": true, "LOG_LEVEL": true, "LOG_FORMAT": true, "LOG_EVENTS": true,
	"PUBSUB_TOPIC": true, "PUBSUB_SUBSCRIPTION": true, "GOOGLE_CLOUD_PROJECT": true, "CLOUDSQL_INSTANCE": true, "TRUSTED_PROXIES": true,
}

// deployment are names with our prefix that docker-compose.yml reads.
var deployment = map[string]bool{"EVENTSV2_HANDLERS_FILE": true}

// serviceLink is a variable that Kubernetes sets for each Service of a namespace, such as WORKER_PORT_8080_TCP.
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_.*)?)$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?$`)

// misspelled returns an error that names each variable that seems to be meant as one of ours.
func misspelled(environment map[string]string) error {
	known := knownNames()
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if meant := meantBy(name, known); meant != "" {
			problems = append(problems, fmt.Errorf("%s is set, and no program reads it: did you mean %s?", name, meant))
		}
	}
	return errors.Join(problems...)
}

// knownNames are the variables of all programs.
func knownNames() map[string]bool {
	known := map[string]bool{}
	add := func(of reflect.Type) {
		for f := range of.Fields() {
			if name := f.Tag.Get("env"); name != "-" {
				known[name] = true
			}
		}
	}
	add(reflect.TypeFor[Config]())
	for _, notifier := range notifiers {
		if notifier.New != nil {
			add(reflect.TypeOf(notifier.New()).Elem())
		}
	}
	return known
}

// meantBy returns the known name that a name is a mistake for; "" if it is none.
func meantBy(name string, known map[string]bool) string {
	if known[name] || deployment[name] || serviceLink.MatchString(name) {
		return ""
	}
	for _, prefix := range prefixes {
		rest, has := strings.CutPrefix(strings.ToUpper(name), prefix)
		if has && known[rest] {
			return rest
		}
		if has {
			name = rest
			break
		}
	}
	for _, of := range slices.Sorted(maps.Keys(known)) {
		if isMistakeFor(name, of) {
			return of
		}
	}
	return ""
}

// isMistakeFor reports whether a name is a known one with another case, or with a mistake in one word.
func isMistakeFor(name, of string) bool {
	if strings.EqualFold(name, of) {
		return name != of && !shared[of]
	}
	words, wanted := strings.Split(name, "_"), strings.Split(of, "_")
	if len(words) != len(wanted) {
		return false
	}
	mistakes := 0
	for i, word := range words {
		if word == wanted[i] {
			continue
		}
		if word == wanted[i]+"S" && shared[of] || !isMistyped(word, wanted[i]) {
			return false
		}
		mistakes++
	}
	return mistakes == 1
}

const (
	// A word of fewer letters is as likely to be another word as a mistake.
	shortestWord = 5
	// Of words below this length, one letter in place of another makes another word: DELAY, RELAY.
	distinctWord = 7
	// A word of this length and more may have two mistakes.
	longWord = 9
)

// isMistyped reports whether the wanted word may have been meant.
func isMistyped(word, wanted string) bool {
	switch n := len(wanted); {
	case n < shortestWord || strings.ContainsAny(word, "0123456789"):
		return false
	case n < distinctWord && len(word) == n && !isTransposed(word, wanted):
		return false
	case n >= longWord:
		return spelling.Mistakes(word, wanted) <= 2
	default:
		return spelling.Mistakes(word, wanted) <= 1
	}
}

func isTransposed(word, wanted string) bool {
	sorted := func(s string) string {
		letters := []byte(s)
		slices.Sort(letters)
		return string(letters)
	}
	return sorted(word) == sorted(wanted)
}
