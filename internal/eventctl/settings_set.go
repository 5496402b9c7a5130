package eventctl

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
)

// lockTimeoutSetting is the name of the only setting.
const lockTimeoutSetting = "lock-timeout"

func setSettingCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "set lock-timeout DURATION",
		Short: "Change how long a lock is valid without being renewed",
		Long: "Change how long a lock is valid without being renewed. Programs that start from then on use it, or\n" +
			"are refused if their LOCK_TIMEOUT is different. Until eventctl settings finalize, a lock is valid\n" +
			"for the longer of the new and the old time, so that programs that run with the old one lose none.",
		Example:   "  eventctl settings set lock-timeout 2m",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []cobra.Completion{lockTimeoutSetting},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != lockTimeoutSetting {
				return badInput(fmt.Errorf("%q is no setting: the only one is %s", args[0], lockTimeoutSetting))
			}
			to, err := time.ParseDuration(args[1])
			if err != nil || to < time.Second || to > 720*time.Hour {
				return badInput(fmt.Errorf("%q is no lock timeout: write a duration from 1s to 720h, like 90s or 2m", args[1]))
			}
			return p.withSettings(cmd.Context(), func(store *pgstore.Store) error { return store.SetLockTimeout(cmd.Context(), to) })
		},
	}
}
