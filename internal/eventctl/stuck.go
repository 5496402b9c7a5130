package eventctl

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

func stuckCommand(p *program) *cobra.Command {
	var long inspect.StuckAfter
	cmd := &cobra.Command{
		Use:   "stuck",
		Short: "List the events that seem stuck, and why",
		Long: "List the events that have not ended, that no rule holds back and that make no progress, by id. The\n" +
			"reasons are:\n\n" +
			"  expired    its lock has expired: the next claim takes it over, if there is a worker\n" +
			"  unclaimed  due and free for longer than --for: no worker has its handler, or none runs, or all\n" +
			"             are busy, or its notification was lost\n" +
			"  repeated   claimed --attempts times or more: its runs fail, lose their worker, or put it off\n\n" +
			"Paused and blocked events are not stuck. Delayed and running ones are stuck only as repeated, and\n" +
			"so are those that wait behind another event of their ordering group. SINCE is when the first\n" +
			"reason began, NOTIFIED when the event's notification was last published. The command reads all\n" +
			"events of the canvas, or of all canvases without --canvas, 20,000 per statement.",
		Example: "  eventctl stuck --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11\n" +
			"  eventctl stuck --for 1h --attempts 5",
		Args: cobra.NoArgs,
	}
	flags, page := addFilter(cmd), addPage(cmd)
	cmd.Flags().DurationVar(&long.Unclaimed, "for", 5*time.Minute, "how long a due event may be free, as a `duration`")
	cmd.Flags().Int32Var(&long.Attempts, "attempts", 10, "`n` claims or more are too many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if err := errors.Join(page.check(), checkStuckAfter(long)); err != nil {
			return err
		}
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			events, err := reader.Stuck(cmd.Context(), filter, long, eventqueue.EventID(page.after), page.limit)
			if err != nil {
				return failed(fmt.Errorf("query stuck events: %w", err))
			}
			list := view.FullPageOf(events, page.limit, view.StuckEventOf, func(e view.StuckEvent) eventqueue.EventID { return e.ID })
			return writeList(p, list, "stuck events", "ID  REASON  SINCE  AGE  ATTEMPTS  RETRIES  NOTIFIED  MODULE  NAME  MODIFIER  CANVAS", func(e view.StuckEvent) []any {
				return append([]any{e.ID, e.Why(), e.When(&e.Since), e.Age(), e.Attempts, e.Retries, e.Notified()}, handlerCells(e.Event)...)
			})
		})
	}
	return cmd
}

func checkStuckAfter(long inspect.StuckAfter) error {
	if long.Unclaimed < 0 {
		return badInput(fmt.Errorf("--for is %s: it must not be negative", long.Unclaimed))
	}
	if long.Attempts < 1 {
		return badInput(errors.New("--attempts must be at least 1"))
	}
	return nil
}
