package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
)

func showSettingsCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the settings",
		Long:    "Show the settings that all programs of a database share: how long a lock is valid without being renewed.",
		Example: "  eventctl settings show",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSettings(cmd.Context(), func(*pgstore.Store) error { return nil })
		},
	}
}
