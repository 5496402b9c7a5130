package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/migrations"
)

func migrateRolesCommand(p *program) *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "roles",
		Short: "Print roles for emitters, workers, cron, operators and readers as SQL, to run with psql",
		Long: "Print roles for emitters, workers, cron, operators and readers as SQL, to run with psql as the owner of\n" +
			"the schema, after each migrate up. It connects to nothing.",
		Example: "  eventctl migrate roles --prefix queue_",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			sql, err := migrations.In(p.schema()).Roles(prefix)
			if err != nil {
				return badInput(err)
			}
			return p.writeSQL(sql)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", migrations.RolePrefix, "what the names of the roles begin with")
	return cmd
}
