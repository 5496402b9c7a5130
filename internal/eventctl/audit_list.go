package eventctl

import (
	"cmp"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

func listAuditCommand(p *program) *cobra.Command {
	var filter audit.Filter
	var event, operation string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what operators changed, the newest first",
		Long: "List what operators changed over eventctl, the HTTP API and the dashboard, the newest first. With --json each\n" +
			"entry has the changed object as it was before and after.",
		Example: "  eventctl audit list --event 17\n" +
			"  eventctl audit list --actor os:ada --limit 200 --json",
		Args: cobra.NoArgs,
	}
	page := addPage(cmd)
	cmd.Flags().Lookup("after").Usage = "begin after the entry with this `id`, the last one of the previous page"
	cmd.Flags().StringVar(&event, "event", "", "only changes of the event with this `id`")
	cmd.Flags().StringVar(&filter.Actor, "actor", "", "only changes by this `name`")
	cmd.Flags().StringVar(&operation, "operation", "", "only changes of this operation, a `UUID`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := page.check(); err != nil {
			return err
		}
		if event != "" {
			ids, err := parseIDs([]string{event})
			if err != nil {
				return err
			}
			filter.Event = ids[0]
		}
		if operation != "" {
			if filter.Operation, err = uuid.Parse(operation); err != nil {
				return badInput(fmt.Errorf("--operation %q is no uuid: eventctl operation list has them", operation))
			}
		}
		return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
			found, err := audit.NewLog(store.Schema(), store.Pool()).List(cmd.Context(), filter, page.after, page.limit)
			if err != nil {
				return failed(err)
			}
			rowOf := func(e audit.Entry) view.AuditRow { return view.AuditRowOf(e, true) }
			list := view.FullPageOf(found, page.limit, rowOf, func(r view.AuditRow) int64 { return r.ID })
			return writeList(p, list, "entries in the audit log", "ID  AT  ACTOR  VIA  ACTION  CANVAS  OF", func(r view.AuditRow) []any {
				return []any{r.ID, r.At, cmp.Or(r.Actor, r.Source), r.Via, r.Action, orAll(r.Canvas), printing.Brief(string(r.Target))}
			})
		})
	}
	return cmd
}
