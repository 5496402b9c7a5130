package eventctl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// logStatuses are the values of --status.
func logStatuses() []string {
	return view.All([]inspect.LogStatus{inspect.LogFailed, inspect.LogCompleted, inspect.LogCancelled}, view.EndState)
}

// parseStatus reads --status.
func parseStatus(text string) (inspect.LogStatus, error) {
	return inspect.LogStatus(strings.ToUpper(text)), checkChoice("status", text, logStatuses()...)
}

func listLogCommand(p *program) *cobra.Command {
	var text string
	var pairs []string
	var newest bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the events that have ended: the failed ones, and the completed ones if workers retain them",
		Long: "List the events that have ended, by id: the failed ones, and the completed ones if the workers\n" +
			"retain them (RETAIN_HISTORY). eventctl show prints the value and the whole error of one event.",
		Example: "  eventctl log list --status failed --newest\n" +
			"  eventctl log list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --limit 1000 --json",
		Args: cobra.NoArgs,
	}
	flags, page := addFilter(cmd), addPage(cmd)
	addChoice(cmd, &text, "status", "", "only events that ended with this `status`", logStatuses()...)
	addAttributes(cmd, &pairs, "only events with this attribute, as `key=value`; several: with all of them")
	cmd.Flags().BoolVar(&newest, "newest", false, "begin with the highest id; --after then goes downwards")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		var status inspect.LogStatus
		if cmd.Flags().Changed("status") {
			if status, err = parseStatus(text); err != nil {
				return err
			}
		}
		if err := page.check(); err != nil {
			return err
		}
		if filter.Attributes, err = parseAttributes(pairs); err != nil {
			return err
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			entries, next, err := reader.Log(cmd.Context(), filter, status, newest, eventqueue.EventID(page.after), page.limit)
			if err != nil {
				return failed(fmt.Errorf("list event_log: %w", err))
			}
			return writeSearched(p, view.PageOf(entries, next, view.EndedEventOf), page.limit, "entries in event_log",
				"ID  STATE  ENDED  RETRIES  MODULE  NAME  MODIFIER  CANVAS  WHY", func(e view.Event) []any {
					return append(append([]any{e.ID, e.State, e.When(e.EndedAt), e.Retries}, handlerCells(e)...), printing.Brief(e.WhyEnded()))
				})
		})
	}
	return cmd
}
