package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
)

// Verb names a right.
type Verb string

// The verbs. None includes another.
const (
	// Read is to see everything but what ReadValues and Administer are for.
	Read Verb = "read"
	// ReadValues is to see the values of events.
	ReadValues Verb = "read_values"
	// Emit is to emit events.
	Emit Verb = "emit"
	// Operate is to pause, and to cancel, edit and retry events.
	Operate Verb = "operate"
	// Administer is to block, to limit, to schedule, and to see and make tokens.
	Administer Verb = "administer"
)

// Verbs lists all verbs.
func Verbs() []Verb { return []Verb{Read, ReadValues, Emit, Operate, Administer} }

// ParseVerbs reads verbs that are separated by commas, or the word all.
func ParseVerbs(text string) (verbs []Verb, err error) {
	if text == "all" {
		return Verbs(), nil
	}
	for word := range strings.SplitSeq(text, ",") {
		verbs = append(verbs, Verb(strings.TrimSpace(word)))
	}
	return verbs, Grant{Verbs: verbs}.Validate()
}

// Grant gives rights on canvases.
type Grant struct {
	// Canvases are those that the grant is for; nil is all of them, now and later.
	Canvases []eventqueue.CanvasID
	Verbs    []Verb
}

// maxCanvases is how many canvases a grant may name.
const maxCanvases = 1000

// Validate names the first thing that makes no sense.
func (g Grant) Validate() error {
	if g.Canvases != nil && len(g.Canvases) == 0 {
		return fmt.Errorf("canvases: there is none: name one, or grant all")
	}
	if n := len(g.Canvases); n > maxCanvases {
		return fmt.Errorf("canvases: there are %d: the limit is %d", n, maxCanvases)
	}
	seen := make(map[eventqueue.CanvasID]bool, len(g.Canvases))
	for _, canvas := range g.Canvases {
		if canvas == (eventqueue.CanvasID{}) {
			return fmt.Errorf("canvases: the zero uuid names no canvas")
		}
		if seen[canvas] {
			return fmt.Errorf("canvases: %s is there twice: remove one of the two", canvas)
		}
		seen[canvas] = true
	}
	if len(g.Verbs) == 0 {
		return fmt.Errorf("verbs: there is none: use %s", verbNames())
	}
	for i, verb := range g.Verbs {
		if !slices.Contains(Verbs(), verb) {
			return fmt.Errorf("verbs: %q is unknown: use %s", verb, verbNames())
		}
		if slices.Contains(g.Verbs[:i], verb) {
			return fmt.Errorf("verbs: %s is there twice: remove one of the two", verb)
		}
	}
	return nil
}

func verbNames() string {
	var names []string
	for _, verb := range Verbs() {
		names = append(names, string(verb))
	}
	return strings.Join(names, ", ")
}

// covers reports whether the grant has a verb on a canvas.
func (g Grant) covers(verb Verb, canvas eventqueue.CanvasID) bool {
	return slices.Contains(g.Verbs, verb) && (g.Canvases == nil || slices.Contains(g.Canvases, canvas))
}

// Identity is the sender of a request. The zero Identity may do nothing.
type Identity struct {
	// Name is for the audit log, such as token:deployments, oidc:ada@example.com, or oidc:sub:1234 for an identity
	// without a verified email. Several identities may have one name.
	Name string
	// Grants add up.
	Grants []Grant
	// Key is the same for all requests of the identity, and for no other: for rate limits, and for the audit log.
	Key string
	// EndsIn is for how long the credentials of the identity are valid; 0 for those that do not end by themselves.
	EndsIn time.Duration
	// TokensFor is for how long tokens may be valid that the identity makes; 0: for as long as its credentials.
	TokensFor time.Duration
	// ends is when the JWT of the identity ends.
	ends time.Time
}

// Actor is the identity in the audit log: from where, and by what it makes a change.
func (i Identity) Actor(source, via string) audit.Actor {
	return audit.Actor{Name: i.Name, Key: i.Key, Source: source, Via: via}
}

// May reports whether the identity has a verb on a canvas.
func (i Identity) May(verb Verb, canvas eventqueue.CanvasID) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool { return g.covers(verb, canvas) })
}

// MayEverywhere reports whether the identity has a verb on all canvases.
func (i Identity) MayEverywhere(verb Verb) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool { return g.Canvases == nil && slices.Contains(g.Verbs, verb) })
}

// MayAnywhere reports whether the identity has a verb on some canvas.
func (i Identity) MayAnywhere(verb Verb) bool {
	return slices.ContainsFunc(i.Grants, func(g Grant) bool { return slices.Contains(g.Verbs, verb) })
}

// Canvases returns the canvases on which the identity has a verb; nil is all of them, and a list that
// is empty and not nil is none.
func (i Identity) Canvases(verb Verb) []eventqueue.CanvasID {
	if i.MayEverywhere(verb) {
		return nil
	}
	canvases := []eventqueue.CanvasID{}
	for _, g := range i.Grants {
		if !slices.Contains(g.Verbs, verb) {
			continue
		}
		for _, canvas := range g.Canvases {
			if !slices.Contains(canvases, canvas) {
				canvases = append(canvases, canvas)
			}
		}
	}
	return canvases
}

// Exceeds reports whether a grant allows what the identity may not do itself.
func (i Identity) Exceeds(g Grant) bool {
	for _, verb := range g.Verbs {
		if g.Canvases == nil && !i.MayEverywhere(verb) {
			return true
		}
		for _, canvas := range g.Canvases {
			if !i.May(verb, canvas) {
				return true
			}
		}
	}
	return false
}
