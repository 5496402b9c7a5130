package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/migrations"
)

func migrateSQLCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "sql",
		Short:   "Print all migrations as SQL for an empty database, to run with psql",
		Long:    "Print all migrations as SQL for an empty database, to run with psql. It connects to nothing.",
		Example: "  eventctl migrate sql",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return p.writeSQL(migrations.SQL()) },
	}
}
