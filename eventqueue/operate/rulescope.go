package operate

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue"
)

// RuleScope says which events a rule is about: those of a handler on a canvas, unless it says more.
type RuleScope struct {
	eventqueue.Scope
	// Prefix: the rule is about all handlers of the module on the canvas whose names begin with Name.
	Prefix bool
	// Modifier: the rule is only about handlers with this modifier. Empty: whatever the modifier.
	Modifier string
}

// WholeQueue is the scope of a rule that holds back every event of the queue, as in a copy of production that must
// not do again what production does. No event has an empty canvas, so no other rule is stored like it.
var WholeQueue = RuleScope{Prefix: true}

// Whole reports whether the scope is the whole queue.
func (s RuleScope) Whole() bool { return s == WholeQueue }

// Validate names the first field that cannot be stored. A prefix is not empty, as no name is.
func (s RuleScope) Validate() error {
	if s.Whole() {
		return nil
	}
	if err := s.Scope.Validate(); err != nil {
		return err
	}
	if s.Modifier == "" {
		return nil
	}
	if err := eventqueue.CheckName(s.Modifier); err != nil {
		return fmt.Errorf("modifier: %w", err)
	}
	return nil
}

// String is as that of Scope: WORKER/greet/formal, or WORKER/gre… for a prefix.
func (s RuleScope) String() string {
	if s.Whole() {
		return "the whole queue"
	}
	name := s.Name
	if s.Prefix {
		name += "…"
	}
	if s.Modifier != "" {
		name += "/" + s.Modifier
	}
	return fmt.Sprintf("%s/%s on canvas %s", s.Module, name, s.Canvas)
}

// Matches reports whether events of a handler on a canvas are in the scope.
func (s RuleScope) Matches(canvas eventqueue.CanvasID, handler eventqueue.HandlerKey) bool {
	return s.Whole() || s.Canvas == canvas && s.Module == handler.Module && s.matchesName(handler.Name) &&
		(s.Modifier == "" || s.Modifier == handler.Modifier)
}

func (s RuleScope) matchesName(name string) bool {
	if s.Prefix {
		return strings.HasPrefix(name, s.Name)
	}
	return s.Name == name
}

// Covers reports whether every event that is in the other scope is in this one, too.
func (s RuleScope) Covers(other RuleScope) bool {
	return s.Whole() || s.Canvas == other.Canvas && s.Module == other.Module && s.matchesName(other.Name) && (s.Prefix || !other.Prefix) &&
		(s.Modifier == "" || s.Modifier == other.Modifier)
}

// Overlaps reports whether an event can be in both scopes.
func (s RuleScope) Overlaps(other RuleScope) bool {
	names := s.matchesName(other.Name) && (s.Prefix || !other.Prefix) || other.matchesName(s.Name) && (other.Prefix || !s.Prefix)
	return s.Whole() || other.Whole() || s.Canvas == other.Canvas && s.Module == other.Module && names &&
		(s.Modifier == "" || other.Modifier == "" || s.Modifier == other.Modifier)
}
