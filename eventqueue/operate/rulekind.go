package operate

import (
	"slices"

	"eventsv2/eventqueue/machine"
)

// RuleKind is what the commands, the API, the pages and the explanations say about the rules of one type.
type RuleKind struct {
	Type RuleType
	// Label is why the machine does not claim the events that a rule holds back, and State the state that they are in.
	Label machine.Label
	State EventState
	// Add and Lift are the verbs of the commands and routes, and Lifted is the participle of Lift, as State is of Add.
	Add, Lift, Lifted string
	// Holder is who adds and lifts the rules, which takes an administrator if Admin is set.
	Holder string
	Admin  bool
	// Summary says what adding one does.
	Summary string
}

// The states of events that rules hold back.
const (
	StatePaused  EventState = "paused"
	StateBlocked EventState = "blocked"
)

// A stronger kind comes after a weaker one, as in the enumeration of the database.
var ruleKinds = []RuleKind{
	{Type: PauseRule, Label: machine.Paused, State: StatePaused, Add: "pause", Lift: "unpause", Lifted: "unpaused", Holder: "the user",
		Summary: "Events are kept and wait. Runs that have begun go on."},
	{Type: BlockRule, Label: machine.Blocked, State: StateBlocked, Add: "block", Lift: "unblock", Lifted: "unblocked", Holder: "an admin", Admin: true,
		Summary: "As a pause, which only administrators lift."},
}

// RuleKinds returns the kinds of rules, the weakest first: of several that hold an event back, the strongest decides its state.
func RuleKinds() []RuleKind { return slices.Clone(ruleKinds) }

// Known reports whether this program knows the kind.
func (k RuleKind) Known() bool { return slices.Contains(ruleKinds, k) }

// Weaker returns the kinds that are weaker than this one.
func (k RuleKind) Weaker() []RuleKind {
	return slices.Clone(ruleKinds[:max(slices.Index(ruleKinds, k), 0)])
}

// KindOf returns the kind of a rule type. A type that only a newer program knows has its own name in all places.
func KindOf(t RuleType) RuleKind {
	for _, kind := range ruleKinds {
		if kind.Type == t {
			return kind
		}
	}
	return RuleKind{Type: t, Label: machine.Label(t), State: EventState(t), Add: string(t), Lift: "un" + string(t), Lifted: "lifted", Holder: "an admin", Admin: true}
}

// KindLabelled returns the kind of rule that a label is about; ok is false if it is about none.
func KindLabelled(label machine.Label) (kind RuleKind, ok bool) {
	for _, kind := range ruleKinds {
		if kind.Label == label {
			return kind, true
		}
	}
	return RuleKind{}, false
}
