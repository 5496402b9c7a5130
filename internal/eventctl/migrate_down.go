package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/migrations"
)

func migrateDownCommand(p *program) *cobra.Command {
	var steps int
	var yes bool
	cmd := &cobra.Command{
		Use:   "down --yes",
		Short: "Take back the newest migrations, and delete what their tables hold",
		Long: "Take back the newest migration, or --steps of them, which drops its tables and what they hold.\n" +
			"Triggers with send_to_outbox have to be dropped before.",
		Example: "  eventctl migrate down --steps 1 --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 1 {
				return badInput(fmt.Errorf("--steps is %d: give how many migrations to take back, at least 1", steps))
			}
			if !yes {
				return badInput(errors.New("migrate down drops tables with all that they hold: give --yes if that is meant"))
			}
			config, err := p.config()
			if err != nil {
				return err
			}
			done, err := migrations.Down(cmd.Context(), config.DatabaseURL, steps)
			return p.writeMigrations("took back", "no migration is applied", done, err)
		},
	}
	cmd.Flags().IntVar(&steps, "steps", 1, "take back `n` migrations")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, drop the tables and their data")
	return cmd
}
