package eventctl

import (
	"github.com/spf13/cobra"

	"eventsv2/internal/printing"
)

// addSilent adds --no-notify to a command that publishes notifications.
func addSilent(cmd *cobra.Command, silent *bool) {
	cmd.Flags().BoolVar(silent, "no-notify", false, "publish nothing: the relay notifies; needs no Pub/Sub")
}

// notifiedSuffix returns a text with the number of events that a command has notified, or
// left to the relay.
func notifiedSuffix(notified int, silent bool) string {
	if silent {
		return "; left to the relay to notify: " + printing.Plural(notified, "event")
	}
	return "; notified " + printing.Plural(notified, "event")
}

// releasedSuffix returns a text with the number of waiting events that were released. It is
// empty if there were none.
func releasedSuffix(notified int, silent bool) string {
	if notified == 0 {
		return ""
	}
	return notifiedSuffix(notified, silent)
}
