package eventctl

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
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

// logFilterFlags select events that have ended.
type logFilterFlags struct {
	cmd                  *cobra.Command
	scope                *scopeFlags
	pairs                []string
	part, group          string
	olderThan, newerThan string
}

func addLogFilter(cmd *cobra.Command) *logFilterFlags {
	f := &logFilterFlags{cmd: cmd, scope: addFilter(cmd)}
	addAttributes(cmd, &f.pairs, "only events with this attribute, as `key=value`; several: with all of them")
	flags := cmd.Flags()
	flags.StringVar(&f.part, "error", "", "only failed events with this `text` in their error")
	flags.StringVar(&f.group, "error-group", "", "only failed events of this `group`, as eventctl log groups prints it")
	flags.StringVar(&f.olderThan, "older-than", "", "only events that ended longer ago than this `duration`, as in 24h")
	flags.StringVar(&f.newerThan, "newer-than", "", "only events that ended within this `duration`, as in 1h")
	return f
}

func (f *logFilterFlags) filter() (filter inspect.LogFilter, err error) {
	if filter.Filter, err = f.scope.filter(); err != nil {
		return filter, err
	}
	if filter.Attributes, err = parseAttributes(f.pairs); err != nil {
		return filter, err
	}
	for _, flag := range []struct {
		name, value string
		max         int
	}{{"error", f.part, operate.MaxErrorPartBytes}, {"error-group", f.group, operate.MaxErrorGroupBytes}} {
		if f.cmd.Flags().Changed(flag.name) && (flag.value == "" || len(flag.value) > flag.max) {
			return filter, badInput(fmt.Errorf("--%s is empty, or longer than %d bytes: leave it out, or give what to select", flag.name, flag.max))
		}
	}
	filter.Error, filter.ErrorGroup = f.part, f.group
	for _, flag := range []struct {
		name, text string
		age        *time.Duration
	}{{"older-than", f.olderThan, &filter.OlderThan}, {"newer-than", f.newerThan, &filter.NewerThan}} {
		if f.cmd.Flags().Changed(flag.name) {
			if *flag.age, err = parseAge(flag.name, flag.text); err != nil {
				return filter, err
			}
		}
	}
	return filter, nil
}

func listLogCommand(p *program) *cobra.Command {
	var text, after string
	var newest bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the events that have ended: the failed ones, and the completed ones if workers retain them",
		Long: "List the events that have ended, by id: the failed ones, and the completed ones if the workers\n" +
			"retain them (RETAIN_HISTORY). eventctl show prints the value and the whole error of one event.",
		Example: "  eventctl log list --status failed --newest\n" +
			"  eventctl log list --name order_placed --error 'no such order' --newer-than 24h\n" +
			"  eventctl log list --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --limit 1000 --json",
		Args: cobra.NoArgs,
	}
	flags := addLogFilter(cmd)
	addLimit(cmd, &limit)
	cmd.Flags().StringVar(&after, "after", "", "begin after this `place`, with which the page before said that there is more: of a list by id, an id")
	addChoice(cmd, &text, "status", "", "only events that ended with this `status`", logStatuses()...)
	cmd.Flags().BoolVar(&newest, "newest", false, "begin with the newest; of failed or cancelled events, with those that ended last")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("status") {
			if filter.Status, err = parseStatus(text); err != nil {
				return err
			}
		}
		if err := checkLimit(limit); err != nil {
			return err
		}
		place, err := inspect.ParseLogPlace(after)
		if err != nil {
			return badInput(fmt.Errorf("--after %q %w", after, err))
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			entries, next, err := reader.Log(cmd.Context(), filter, newest, place, limit)
			switch {
			case errors.Is(err, inspect.ErrNoLogPlace):
				return badInput(fmt.Errorf("--after %q %w", after, err))
			case err != nil:
				return failed(fmt.Errorf("list event_log: %w", err))
			}
			return writeHistory(p, view.HistoryPageOf(entries, next), limit,
				"ID  STATE  ENDED  RETRIES  MODULE  NAME  MODIFIER  CANVAS  WHY", func(e view.Event) []any {
					return append(append([]any{e.ID, e.State, e.When(e.EndedAt), e.Retries}, handlerCells(e)...), printing.Brief(e.WhyEnded()))
				})
		})
	}
	return cmd
}
