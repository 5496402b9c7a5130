package eventctl

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// filterOf says which events a filter selects from.
type filterOf struct {
	ids       string // what is to be given
	attribute string // the name of the flag that selects by attributes
	state     string // the name of the flag that selects by states, and its help
	stateHelp string
	states    []operate.EventState
	// failure and time are the error and the time by which events are selected.
	failure, time string
	validate      func(operate.EventFilter) error
}

// queuedEvents are selected by commands that change events of the queue.
func queuedEvents(attribute string) filterOf {
	return filterOf{ids: "the ids of events that wait, or a filter, as with --canvas and --name; eventctl list lists the events", attribute: attribute,
		state: "state", stateHelp: "only events in this `state`, see eventctl list --help", states: operate.QueuedStates(),
		failure: "only events whose last failed attempt has this `text` in its error", time: "were emitted", validate: operate.EventFilter.ValidateQueued}
}

// loggedEvents are selected by commands that change event_log.
func loggedEvents(attribute string) filterOf {
	return filterOf{attribute: attribute,
		state: "status", stateHelp: "only events that ended with this `status`; without it, failed ones", states: operate.LoggedStates(),
		failure: "only events with this `text` in their last error", time: "ended", validate: operate.EventFilter.ValidateLogged}
}

// eventFilterFlags select events by a filter instead of ids.
type eventFilterFlags struct {
	of                           filterOf
	scope                        *scopeFlags
	modifier, part, group, state string
	olderThan, newerThan         string
	attributes                   []string
	resume                       string
	dryRun, yes, given, approved bool
}

func addEventFilter(cmd *cobra.Command, of filterOf) *eventFilterFlags {
	f := &eventFilterFlags{of: of, scope: addFilter(cmd)}
	flags := cmd.Flags()
	flags.StringVar(&f.modifier, "modifier", "", "only handlers with this modifier")
	flags.StringVar(&f.part, "error", "", of.failure)
	flags.StringVar(&f.group, "error-group", "", "only events whose error is of this `group`, as eventctl log groups prints it")
	flags.StringVar(&f.olderThan, "older-than", "", "only events that "+of.time+" longer ago than this `duration`, as in 24h")
	flags.StringVar(&f.newerThan, "newer-than", "", "only events that "+of.time+" within this `duration`, as in 1h")
	addChoice(cmd, &f.state, of.state, "", of.stateHelp, view.All(of.states, func(s operate.EventState) string { return string(s) })...)
	flags.StringArrayVar(&f.attributes, of.attribute, nil, "only events with this attribute, as `key=value`; several: with all of them")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with a filter: only count the events")
	flags.BoolVar(&f.yes, "yes", false, "with a filter: yes, all of them")
	flags.StringVar(&f.resume, "resume", "", "go on with the `operation` of this id, which was interrupted")
	return f
}

func (f *eventFilterFlags) resuming() bool { return f.changed("resume") }

// many reports whether the command is about a filter, or an operation that has one.
func (f *eventFilterFlags) many() bool { return f.given || f.resuming() }

// what returns the ids on the command line, or the filter of the flags; neither when it resumes.
func (f *eventFilterFlags) what(args []string) (ids []eventqueue.EventID, filter operate.EventFilter, err error) {
	if f.resuming() {
		return nil, filter, checkResume(f.scope.cmd, args)
	}
	if err = f.check(args); err != nil {
		return nil, filter, err
	}
	if f.given {
		filter, err = f.filter()
		return nil, filter, err
	}
	ids, err = parseIDs(args)
	return ids, filter, err
}

// check decides between ids and a filter.
func (f *eventFilterFlags) check(ids []string) error {
	for _, name := range []string{"canvas", "module", "name", "modifier", "error", "error-group", "older-than", "newer-than", f.of.state, f.of.attribute} {
		f.given = f.given || f.changed(name)
	}
	switch {
	case f.given && len(ids) > 0:
		return badInput(errors.New("ids and a filter exclude each other: give one of them"))
	case !f.given && len(ids) == 0:
		return badInput(errors.New("give " + f.of.ids))
	case f.given && !f.approved && f.dryRun == f.yes:
		return badInput(errors.New("a filter may select many events: give --yes if that is meant, or --dry-run to count them, not both"))
	case !f.given && (f.dryRun || f.yes):
		return badInput(errors.New("--dry-run and --yes go with a filter, not with ids"))
	default:
		return nil
	}
}

func (f *eventFilterFlags) changed(flag string) bool { return f.scope.cmd.Flags().Changed(flag) }

// filter returns the filter of the flags. It refuses a flag that is given and empty, as from an unset
// variable of a script: it must not select everything.
func (f *eventFilterFlags) filter() (operate.EventFilter, error) {
	scope, err := f.scope.filter()
	if err != nil {
		return operate.EventFilter{}, err
	}
	for _, flag := range []struct{ name, value string }{{"modifier", f.modifier}, {"error", f.part}, {"error-group", f.group}} {
		if f.changed(flag.name) && flag.value == "" {
			return operate.EventFilter{}, badInput(fmt.Errorf("--%s is empty: leave it out, or give what to select", flag.name))
		}
	}
	filter := operate.EventFilter{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Modifier: f.modifier, Error: f.part, ErrorGroup: f.group}
	if filter.State, err = f.stateOf(); err != nil {
		return filter, err
	}
	if filter.Attributes, err = parseAttributesOf(f.of.attribute, f.attributes); err != nil {
		return filter, err
	}
	if filter.OlderThan, err = f.age("older-than", f.olderThan); err != nil {
		return filter, err
	}
	if filter.NewerThan, err = f.age("newer-than", f.newerThan); err != nil {
		return filter, err
	}
	given := filter
	if !f.changed("canvas") { // EVENTS_CANVAS alone is no filter: nobody has said which events are meant
		given.Canvas = nil
	}
	if err := f.of.validate(given); err != nil {
		return filter, badInput(err)
	}
	return filter, nil
}

func (f *eventFilterFlags) stateOf() (operate.EventState, error) {
	if !f.changed(f.of.state) {
		return "", nil
	}
	state := operate.EventState(strings.ToLower(f.state))
	return state, checkChoice(f.of.state, f.state, view.All(f.of.states, func(s operate.EventState) string { return string(s) })...)
}

func (f *eventFilterFlags) age(flag, text string) (time.Duration, error) {
	if !f.changed(flag) {
		return 0, nil
	}
	return parseAge(flag, text)
}

// parseAge reads the duration of a flag.
func parseAge(flag, text string) (time.Duration, error) {
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return 0, badInput(fmt.Errorf("--%s %q is not a duration: write it like 90m or 24h", flag, text))
	}
	return age, nil
}
