package eventctl

import (
	"context"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func enableCronCommand(p *program) *cobra.Command {
	return switchCronCommand(p, true, &cobra.Command{
		Use:   "enable --canvas … --name …",
		Short: "Emit for a definition again, from now on",
		Long: "Emit for a definition again, from now on: the slots that passed while it was disabled are skipped,\n" +
			"whatever its policy for missed ones.",
		Example: "  eventctl cron enable --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name nightly",
	})
}

func disableCronCommand(p *program) *cobra.Command {
	return switchCronCommand(p, false, &cobra.Command{
		Use:   "disable --canvas … --name …",
		Short: "Stop emitting for a definition, without removing it",
		Long: "Stop emitting for a definition, without removing it. After the command has returned, no event is\n" +
			"emitted for it.",
		Example: "  eventctl cron disable --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name nightly",
	})
}

func switchCronCommand(p *program, enabled bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	enable := func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error {
		return definitions.SetEnabled(ctx, canvas, name, enabled)
	}
	p.addDefinitionChange(cmd, cmd.Name()+"_cron", enable, func(canvas eventqueue.CanvasID, name string) error {
		return p.writeLine(view.CronChange{Canvas: canvas, Name: name, Enabled: enabled}, cmd.Name()+"d "+printing.Printable(name))
	})
	return cmd
}
