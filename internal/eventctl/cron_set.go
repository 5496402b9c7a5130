package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func setCronCommand(p *program) *cobra.Command {
	var definition cronchecker.NewDefinition
	var missed string
	cmd := &cobra.Command{
		Use:   "set --canvas … --name … --schedule …",
		Short: "Add a cron definition, or replace that of its name",
		Long: "Add a definition, enabled, that emits an event with module CRON and the definition's name for each\n" +
			"slot of its schedule: \"every minute\", hour, 12 hours, day, week or fortnight, or the five fields\n" +
			"minute, hour, day of month, month and day of week, as in \"30 9 * * mon-fri\". A definition of that\n" +
			"name is replaced: the next slot is the first of the new schedule, and slots of the old one that\n" +
			"were due and not yet emitted are dropped. A definition that is the same stays as it is, so a\n" +
			"deployment may set its definitions each time.",
		Example: "  eventctl cron set --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --name nightly --schedule \"30 2 * * *\" --time-zone Europe/Berlin",
		Args:    cobra.NoArgs,
	}
	key := addCronKey(cmd)
	cmd.Flags().StringVar(&definition.Schedule, "schedule", "", "when the slots are")
	cmd.Flags().StringVar(&definition.TimeZone, "time-zone", "UTC", "IANA `zone` whose clock counts, such as Europe/Berlin")
	addChoice(cmd, &missed, "missed", "latest", "which of the `slots` that passed while no checker ran are emitted late", "latest", "all", "none")
	cmd.Flags().BoolVar(&definition.SkipIfPaused, "skip-if-paused", false, "skip the slots that come while the handler is paused or blocked")
	cmd.Flags().BoolVar(&definition.SkipIfRunning, "skip-if-running", false, "skip the slots that come while an earlier event waits or runs")
	require(cmd, "schedule")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if definition.Canvas, err = key.parse(); err != nil {
			return err
		}
		definition.Name = key.name
		if definition.Missed, err = cronchecker.ParseMissed(missed); err != nil {
			return badInput(err)
		}
		if _, err = cronchecker.ParseSchedule(definition.Schedule, definition.TimeZone); err != nil {
			return badInput(err)
		}
		var added cronchecker.Definition
		err = p.changeDefinition(cmd.Context(), "set_cron", definition.Canvas, definition.Name, func(definitions *cronchecker.Definitions) (err error) {
			added, err = definitions.Add(cmd.Context(), definition, true)
			return err
		})
		if err != nil {
			return err
		}
		return p.writeLine(view.CronOf(added, nil), fmt.Sprintf("set %s: %s, %s", printing.Printable(added.Name), added.Schedule, added.TimeZone))
	}
	return cmd
}
