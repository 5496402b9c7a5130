package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/migrations"
)

func migrateSQLCommand(p *program) *cobra.Command {
	var from, to int64
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print migrations as SQL, to run with psql",
		Long: "Print migrations as SQL, to run with psql: all of them, for an empty database, or those from one version to\n" +
			"another. It connects to nothing.",
		Example: "  eventctl migrate sql\n  eventctl migrate sql --from 2",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			sql, err := migrations.In(p.schema()).SQL(from, to)
			if err != nil {
				return badInput(err)
			}
			return p.writeSQL(sql)
		},
	}
	cmd.Flags().Int64Var(&from, "from", 1, "the first `version`; its script is for a schema of the version before")
	cmd.Flags().Int64Var(&to, "to", migrations.Latest(), "the last `version`")
	return cmd
}
