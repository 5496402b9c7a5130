package eventctl

import (
	"context"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func removeCronCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove --canvas … --name …",
		Short: "Remove a cron definition and its records",
		Long: "Remove a cron definition and its records. Events that were emitted stay; after the command has\n" +
			"returned no further one is emitted. The exit status is 3 when there is no such definition.",
		Example: "  eventctl cron remove --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name nightly",
		Args:    cobra.NoArgs,
	}
	remove := func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error {
		return definitions.Remove(ctx, canvas, name)
	}
	p.addDefinitionChange(cmd, "remove_cron", remove, func(canvas eventqueue.CanvasID, name string) error {
		return p.writeLine(view.CronChange{Canvas: canvas, Name: name, Removed: true}, "removed "+printing.Printable(name))
	})
	return cmd
}
