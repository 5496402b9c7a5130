package eventctl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/printing"
	"eventsv2/internal/priority"
	"eventsv2/internal/view"
)

// stateMeanings has a line for each state.
func stateMeanings() string {
	meanings := map[operate.EventState]string{
		operate.StateWaiting: "due and free: a worker may claim it",
		operate.StateDelayed: "not due yet",
		operate.StateRunning: "a worker holds its lock",
		operate.StateExpired: "its lock has expired: the next claim takes it over",
		operate.StateBehind:  "due and free, but others of its ordering group are before it",
	}
	weaker := ""
	for _, kind := range operate.RuleKinds() {
		meanings[kind.State] = "held back by a " + string(kind.Type) + " rule"
		if weaker != "" {
			meanings[kind.State] += ", and perhaps by a " + weaker + " as well"
		}
		weaker = string(kind.Type)
	}
	var b strings.Builder
	for _, state := range operate.QueuedStates() {
		fmt.Fprintf(&b, "\n  %-7s  %s", state, meanings[state])
	}
	return b.String()
}

func listCommand(p *program) *cobra.Command {
	var state, ofPriority string
	var pairs []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the events that have not ended",
		Long:  "List the events that have not ended, by id. Their states are:\n" + stateMeanings(),
		Example: "  eventctl list\n" +
			"  eventctl list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --state paused",
		Args: cobra.NoArgs,
	}
	flags, page := addFilter(cmd), addPage(cmd)
	addChoice(cmd, &state, "state", "", "only events in this `state`", eventStates()...)
	addChoice(cmd, &ofPriority, "priority", "", "only events of this `priority`", priority.All()...)
	addAttributes(cmd, &pairs, "only events with this attribute, as `key=value`; several: with all of them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("state") {
			if err := checkChoice("state", state, eventStates()...); err != nil {
				return err
			}
		}
		if cmd.Flags().Changed("priority") {
			if err := checkChoice("priority", ofPriority, priority.All()...); err != nil {
				return err
			}
		}
		filter.Priority = strings.ToLower(ofPriority)
		if err := page.check(); err != nil {
			return err
		}
		if filter.Attributes, err = parseAttributes(pairs); err != nil {
			return err
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			events, next, err := reader.List(cmd.Context(), filter, inspect.State(strings.ToLower(state)), false,
				eventqueue.EventID(page.after), page.limit)
			if err != nil {
				return failed(fmt.Errorf("list the events: %w", err))
			}
			return writeSearched(p, view.PageOf(events, next, view.EventOf), page.limit, "events",
				"ID  STATE  AGE  DUE  RETRIES  MODULE  NAME  MODIFIER  CANVAS  LAST ERROR", func(e view.Event) []any {
					return append(append([]any{e.ID, e.State, e.Age(), e.When(e.DelayUntil), e.Retries}, handlerCells(e)...), printing.Brief(e.LastError))
				})
		})
	}
	return cmd
}

func eventStates() []string {
	return view.All(inspect.States(), func(s inspect.State) string { return string(s) })
}
