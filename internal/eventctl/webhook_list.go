package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
	"eventsv2/webhook/received"
)

func listWebhooksCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sources of webhooks, with what they received and refused in the last day",
		Long: "List the sources that programs serve or have served, with their requests of the last hour and the last day, and\n" +
			"how many of those of the day were refused, and why. Programs hand in their counts once a minute.",
		Example: "  eventctl webhook list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(store *pgstore.Store, _ setup.Config) error {
				sources, err := received.NewReader(store.Schema(), store.Pool()).Sources(cmd.Context())
				if err != nil {
					return failed(fmt.Errorf("list the sources of webhooks: %w", err))
				}
				heading := "SOURCE  CANVAS  SCHEME  LAST RECEIVED  HOUR  DAY  REFUSED"
				return writeList(p, view.ListOf(sources, view.SourceOf), "sources of webhooks", heading, func(s view.Source) []any {
					return []any{s.Name, orAll(s.Canvas), s.Scheme, s.Received(), view.Requests(s.Hour), view.Requests(s.Day), s.RefusedText()}
				})
			})
		},
	}
}
