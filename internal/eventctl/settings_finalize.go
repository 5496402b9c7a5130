package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
)

func finalizeSettingsCommand(p *program) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "finalize",
		Short: "End the time in which the lock timeout before the last change still counts",
		Long: "End a change of the lock timeout: from now on only the new time counts for all locks. Run it after\n" +
			"every worker, cron process and program of your own was restarted since the change. A program that\n" +
			"still runs with a longer time renews its locks too seldom for the new one, so that its events\n" +
			"would run twice: while some locks are valid only by the old time, finalize changes nothing and\n" +
			"reports them. If the new time is less than half of the old one, it first watches the locks for up to\n" +
			"about twice the new time: by then the lock of a program with the longer time shows. Locks of\n" +
			"programs that have died expire by themselves; --force waits for nothing.",
		Example: "  eventctl settings finalize",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSettings(cmd.Context(), func(store *pgstore.Store) error { return store.FinalizeLockTimeout(cmd.Context(), force) })
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "finalize although there are locks that are valid only by the old time: their events are run anew at once")
	return cmd
}
