package eventctl

import (
	"github.com/spf13/cobra"
)

func migrateUpCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that were not applied yet",
		Long: "Apply the migrations that were not applied yet. It may be run any number of times, also by\n" +
			"several processes at once.",
		Example: "  eventctl migrate up",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			migrator, databaseURL, err := p.migrator(cmd.Context())
			if err != nil {
				return err
			}
			done, err := migrator.Up(cmd.Context(), databaseURL)
			return p.writeMigrations("applied", "the schema is up to date", done, err)
		},
	}
}
