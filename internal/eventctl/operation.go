package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

func listOperationsCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List changes of many events, the newest first",
		Long: "List the changes of many events that were begun in the last week, over eventctl, the HTTP API and the dashboard,\n" +
			"the newest first, with their progress.",
		Example: "  eventctl operation list",
		Args:    cobra.NoArgs,
	}
	limit := cmd.Flags().Int("limit", 50, fmt.Sprintf("show at most `n`, from 1 to %d", maxPage))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := (&pageFlags{limit: *limit}).check(); err != nil {
			return err
		}
		return p.withOperations(cmd.Context(), func(operations *operate.Operations) error {
			found, err := operations.List(cmd.Context(), nil, *limit)
			if err != nil {
				return failed(err)
			}
			heading := "ID  STATE  BEGUN  CHANGED  OF  CHANGE  EVENTS  ACTOR"
			return writeList(p, view.ListOf(found, view.OperationOf), "operations", heading, func(o view.Operation) []any {
				return []any{o.ID, o.State, o.StartedAt, o.Changed, o.Counted, o.Title(), printing.Brief(o.What()), o.Actor}
			})
		})
	}
	return cmd
}

func showOperationCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "show OPERATION",
		Short:   "Show a change of many events and its progress",
		Long:    "Show a change of many events, how far it is, and how many events were refused.",
		Example: "  eventctl operation show 0b6e7f6a-3c7e-4a35-9a37-3fd5f1b8a2d4",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return badInput(fmt.Errorf("%q is no uuid: eventctl operation list has those of operations", args[0]))
			}
			return p.withOperations(cmd.Context(), func(operations *operate.Operations) error {
				op, err := operations.Get(cmd.Context(), id)
				if errors.Is(err, operate.ErrUnknownOperation) {
					return unknownOperation(id)
				}
				if err != nil {
					return failed(err)
				}
				o := view.OperationOf(op)
				return p.write(o, func(w io.Writer) {
					printing.Table(w, factRows("operation", o.ID, "change", o.Title(), "events", o.What(), "reason", o.Reason, "state", o.State, "actor", o.Actor,
						"via", o.Via, "counted", o.Counted, "changed", o.Changed, "running", o.Running, "busy", o.Busy, "refused", o.Refused,
						"begun", o.StartedAt, "ended", o.EndedAt))
				})
			})
		},
	}
}

func unknownOperation(id uuid.UUID) error {
	return notFound("there is no operation %s: it ended more than a week ago, or the id is mistyped", id)
}

// withOperations calls f with the operations of the database, without a notifier.
func (p *program) withOperations(ctx context.Context, f func(*operate.Operations) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, config setup.Config) error {
		queue, err := silentQueue(store, config.Limits())
		if err != nil {
			return failed(err)
		}
		operations, err := operate.NewOperations(store, queue, p.Logger())
		if err != nil {
			return failed(err)
		}
		return f(operations)
	})
}
