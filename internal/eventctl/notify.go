package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/internal/printing"
)

// addSilent gives a command that publishes notifications the flag not to.
func addSilent(cmd *cobra.Command, silent *bool) {
	cmd.Flags().BoolVar(silent, "no-notify", false, "publish nothing: the relay notifies; needs no Pub/Sub")
}

// notifiedSuffix says how many events a command has notified, or left to the relay.
func notifiedSuffix(notified int, silent bool) string {
	if silent {
		return "; left to the relay to notify: " + printing.Plural(notified, "event")
	}
	return "; notified " + printing.Plural(notified, "event")
}

// releasedSuffix says how many events that waited were released, if any were.
func releasedSuffix(notified int, silent bool) string {
	if notified == 0 {
		return ""
	}
	return notifiedSuffix(notified, silent)
}
