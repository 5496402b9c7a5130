package eventctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// editFlags describe an operate.Edit.
type editFlags struct {
	cmd                      *cobra.Command
	value, delay, delayUntil string
	attributes               []string
	noAttributes             bool
}

func addEdit(cmd *cobra.Command) *editFlags {
	f := &editFlags{cmd: cmd}
	flags := cmd.Flags()
	flags.StringVar(&f.value, "value", "", "the new value, as `JSON`, @file to read it from, or - for standard input")
	flags.StringVar(&f.delay, "delay", "", "due when this `duration` has passed, as in 5m; 0s is now")
	flags.StringVar(&f.delayUntil, "delay-until", "", "due at this `time`, as in 2030-01-31T09:00:00Z")
	addAttributes(cmd, &f.attributes, "an attribute, as `key=value`; those that are given replace all that the event has")
	flags.BoolVar(&f.noAttributes, "no-attributes", false, "remove all attributes")
	cmd.MarkFlagsMutuallyExclusive("delay", "delay-until")
	cmd.MarkFlagsMutuallyExclusive("attribute", "no-attributes")
	return f
}

func (f *editFlags) given(flag string) bool { return f.cmd.Flags().Changed(flag) }

// any reports whether one of the flags is given.
func (f *editFlags) any() bool {
	return f.given("value") || f.given("delay") || f.given("delay-until") || f.given("attribute") || f.noAttributes
}

// edit returns what the flags describe; without any, the zero Edit.
func (f *editFlags) edit(p *program) (edit operate.Edit, err error) {
	if !f.any() {
		return edit, nil
	}
	config, err := p.config()
	if err != nil {
		return edit, err
	}
	if f.given("value") {
		if edit.Value, err = p.value(f.value, config.MaxValueBytes); err != nil {
			return edit, badInput(err)
		}
	}
	if f.given("attribute") || f.noAttributes {
		if edit.Attributes, err = parseAttributes(f.attributes); err != nil {
			return edit, err
		}
	}
	if f.given("delay") {
		delay, err := time.ParseDuration(f.delay)
		if err != nil {
			return edit, badInput(fmt.Errorf("--delay %q is not a duration: write it like 30s, 10m or 1h30m", f.delay))
		}
		edit.Delay = &delay
	}
	if f.given("delay-until") {
		if edit.DelayUntil, err = time.Parse(time.RFC3339, f.delayUntil); err != nil {
			return edit, badInput(fmt.Errorf("--delay-until %q is not a time: write it like 2030-01-31T09:00:00Z", f.delayUntil))
		}
	}
	if err := edit.Check(config.Limits()); err != nil {
		return edit, badInput(err)
	}
	return edit, nil
}

func editCommand(p *program) *cobra.Command {
	var silent bool
	cmd := &cobra.Command{
		Use:   "edit {ID… | filter {--dry-run | --yes} | --resume OPERATION} {--value … | --attribute … | --no-attributes | --delay … | --delay-until …}",
		Short: "Change the value, the attributes or the due time of waiting events",
		Long: "Change events that wait: their value, all of their attributes, or when they are due. A running event\n" +
			"is refused: its run goes on with the value that it began with. What emit refuses is refused before\n" +
			"anything is written. Of several ids, those that wait are edited; the exit status is 3 if any of them\n" +
			"was refused. A filter needs --yes, or --dry-run, which counts; all of its events become the same.\n" +
			"An interrupt stops it, and --resume goes on.\n" +
			"eventctl retry takes the same flags, for events that have failed or were cancelled.",
		Example: "  eventctl edit 17 --value '{\"order\": 2}'\n" +
			"  eventctl edit 17 18 --delay 1h --attribute source=import\n" +
			"  eventctl edit --name order_placed --where-attribute source=import --delay 1h --dry-run",
		Args: cobra.ArbitraryArgs,
	}
	filters, flags := addEventFilter(cmd, queuedEvents("where-attribute")), addEdit(cmd)
	addSilent(cmd, &silent)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !flags.any() && !filters.resuming() {
			return badInput(errors.New("say what to change: --value, --attribute, --no-attributes, --delay or --delay-until"))
		}
		ids, filter, err := filters.what(args)
		if err != nil {
			return err
		}
		edit, err := flags.edit(p)
		if err != nil {
			return err
		}
		if filters.many() {
			return p.changeMany(cmd.Context(), filters, operate.Change{Verb: operate.VerbEdit, Filter: filter, Edit: edit}, silent)
		}
		return p.withQueue(cmd.Context(), silent, func(c *connection) error {
			return p.changeIDs(cmd.Context(), c, operate.VerbEdit, ids, func(ctx context.Context, changer *operate.Changer, ids []eventqueue.EventID) ([]operate.Changed, error) {
				return changer.Edit(ctx, edit, ids...)
			})
		})
	}
	return cmd
}
