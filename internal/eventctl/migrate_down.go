package eventctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func migrateDownCommand(p *program) *cobra.Command {
	var steps int
	var yes bool
	cmd := &cobra.Command{
		Use:   "down --yes",
		Short: "Revert the newest migrations, and delete the data of their tables",
		Long: "Revert the newest migration, or --steps of them, which drops its tables and what they hold.\n" +
			"Drop the triggers that use send_to_outbox first.",
		Example: "  eventctl migrate down --steps 1 --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 1 {
				return badInput(fmt.Errorf("--steps is %d: give how many migrations to take back, at least 1", steps))
			}
			if !yes {
				return badInput(errors.New("migrate down drops tables with all that they hold: give --yes if that is meant"))
			}
			migrator, databaseURL, err := p.migrator(cmd.Context())
			if err != nil {
				return err
			}
			done, err := migrator.Down(cmd.Context(), databaseURL, steps)
			return p.writeMigrations("took back", "no migration is applied", done, err)
		},
	}
	cmd.Flags().IntVar(&steps, "steps", 1, "revert `n` migrations")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, drop the tables and their data")
	return cmd
}
