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
		Long: "End a change of the lock timeout: from now on the new time alone counts for all locks. Give it when\n" +
			"each worker, cron process and program of your own was restarted after the change. A program that\n" +
			"still runs with a longer time renews its locks too seldom for the new one, so that its events would\n" +
			"run twice: while there are locks that are valid only by the old time, finalize changes nothing and\n" +
			"says which. If the new time is less than half of the old one, it watches the locks before, for up to\n" +
			"about twice the new time: the lock of a program with the longer time shows by then. Those of programs\n" +
			"that have died expire by themselves; --force waits for nothing.",
		Example: "  eventctl settings finalize",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSettings(cmd.Context(), func(store *pgstore.Store) error { return store.FinalizeLockTimeout(cmd.Context(), force) })
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "finalize although there are locks that are valid only by the old time: their events are run anew at once")
	return cmd
}
