package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/migrations"
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
			config, err := p.config()
			if err != nil {
				return err
			}
			done, err := migrations.In(config.Schema).Up(cmd.Context(), config.DatabaseURL)
			return p.writeMigrations("applied", "the schema is up to date", done, err)
		},
	}
}
