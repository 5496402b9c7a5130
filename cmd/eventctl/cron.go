package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

func (a *app) cronCommand() *cobra.Command {
	return group("cron", "Manage cron definitions",
		a.cronAddCommand(), a.cronLsCommand(), a.cronRmCommand(), a.cronNextCommand(),
		a.cronSwitchCommand("enable", "Emit for a definition again, from now on", true),
		a.cronSwitchCommand("disable", "Emit no more for a definition, but keep it", false))
}

// cronKey are --canvas and --name, which identify a definition.
type cronKey struct{ canvas, name string }

func addCronKey(cmd *cobra.Command) *cronKey {
	k := &cronKey{}
	cmd.Flags().StringVar(&k.canvas, "canvas", "", "`uuid` of the canvas")
	cmd.Flags().StringVar(&k.name, "name", "", "name of the definition, which its events have as well")
	require(cmd, "canvas", "name")
	return k
}

func (k *cronKey) parse() (eventqueue.CanvasID, error) {
	canvas, err := parseCanvas(k.canvas)
	if err != nil {
		return canvas, err
	}
	key := eventqueue.HandlerKey{Module: cronchecker.Module, Name: k.name, Modifier: cronchecker.Modifier}
	if field, err := eventqueue.CheckHandler(key); err != nil {
		return canvas, badInput(fmt.Errorf("%s: %w", field, err))
	}
	return canvas, nil
}

// onDefinition makes the body of a command about one definition.
func (a *app) onDefinition(key *cronKey, f func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		canvas, err := key.parse()
		if err != nil {
			return err
		}
		return a.withDefinitions(cmd.Context(), func(definitions *cronchecker.Definitions) error {
			return f(cmd.Context(), definitions, canvas)
		})
	}
}

func (a *app) withDefinitions(ctx context.Context, f func(definitions *cronchecker.Definitions) error) error {
	return a.withStore(ctx, func(store *pgstore.Store, _ service.Config) error {
		return f(cronchecker.NewDefinitions(store.Pool()))
	})
}

// cronDoc is a cron definition, in JSON.
type cronDoc struct {
	ID       cronchecker.CronID  `json:"id"`
	Canvas   eventqueue.CanvasID `json:"canvas_id"`
	Name     string              `json:"name"`
	Schedule string              `json:"schedule"`
	TimeZone string              `json:"time_zone"`
	Missed   cronchecker.Missed  `json:"missed"`
	Enabled  bool                `json:"enabled"`
	StartsAt time.Time           `json:"starts_at"`
	LastSlot *time.Time          `json:"last_slot"`
}

func cronDocOf(d cronchecker.Definition) cronDoc {
	doc := cronDoc{d.ID, d.Canvas, d.Name, d.Schedule, d.TimeZone, d.Missed, d.Enabled, d.StartsAt.UTC(), nil}
	if !d.LastSlot.IsZero() {
		doc.LastSlot = new(d.LastSlot.UTC())
	}
	return doc
}

func (a *app) cronAddCommand() *cobra.Command {
	var definition cronchecker.NewDefinition
	var missed string
	var replace bool
	cmd := &cobra.Command{
		Use:   "add --canvas … --name … --schedule …",
		Short: "Add a cron definition, or replace one",
		Long: "add makes a definition, enabled, that emits an event with module CRON and the definition's name for\n" +
			"each slot of its schedule: \"every minute\", hour, 12 hours, day, week or fortnight, or the five fields\n" +
			"minute, hour, day of month, month and day of week, as in \"30 9 * * mon-fri\".",
		Args: cobra.NoArgs,
	}
	key := addCronKey(cmd)
	cmd.Flags().StringVar(&definition.Schedule, "schedule", "", "when the slots are")
	cmd.Flags().StringVar(&definition.TimeZone, "time-zone", "UTC", "IANA `zone` whose clock counts, such as Europe/Berlin")
	cmd.Flags().StringVar(&missed, "missed", "latest", "which `slots` to make up for that passed while no checker ran: latest, all or none")
	cmd.Flags().BoolVar(&replace, "replace", false, "take the place of the definition of that name, if there is one")
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
		return a.withDefinitions(cmd.Context(), func(definitions *cronchecker.Definitions) error {
			added, err := definitions.Add(cmd.Context(), definition, replace)
			if err != nil {
				if errors.Is(err, cronchecker.ErrTaken) {
					err = fmt.Errorf("%w (--replace replaces it)", err)
				}
				return failed(err)
			}
			return a.write(cronDocOf(added), func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "added %s: %s, %s\n", printable(added.Name), added.Schedule, added.TimeZone)
			})
		})
	}
	return cmd
}

func (a *app) cronLsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List cron definitions", Args: cobra.NoArgs}
	cmd.Flags().String("canvas", "", "only the canvas with this `uuid`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		only, err := onlyCanvas(cmd)
		if err != nil {
			return err
		}
		return a.withDefinitions(cmd.Context(), func(definitions *cronchecker.Definitions) error {
			list, err := definitions.List(cmd.Context(), only)
			if err != nil {
				return failed(err)
			}
			return a.writeDefinitions(list)
		})
	}
	return cmd
}

func (a *app) writeDefinitions(list []cronchecker.Definition) error {
	doc := struct {
		Definitions []cronDoc `json:"definitions"`
	}{make([]cronDoc, 0, len(list))}
	rows := [][]string{{"CANVAS", "NAME", "SCHEDULE", "TIME ZONE", "MISSED", "ENABLED", "LAST SLOT"}}
	for _, d := range list {
		doc.Definitions = append(doc.Definitions, cronDocOf(d))
		enabled, last := "yes", "-"
		if !d.Enabled {
			enabled = "no"
		}
		if !d.LastSlot.IsZero() {
			last = clockTime(d.LastSlot)
		}
		rows = append(rows, []string{d.Canvas.String(), printable(d.Name), printable(d.Schedule), printable(d.TimeZone), string(d.Missed), enabled, last})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "cron definitions", nil) })
}

// cronChange is the result of a change to a definition.
type cronChange struct {
	Canvas  eventqueue.CanvasID `json:"canvas_id"`
	Name    string              `json:"name"`
	Removed bool                `json:"removed,omitempty"`
	Enabled *bool               `json:"enabled,omitempty"`
}

func (a *app) cronRmCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rm --canvas … --name …", Short: "Remove a cron definition and its records", Args: cobra.NoArgs}
	key := addCronKey(cmd)
	cmd.RunE = a.onDefinition(key, func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID) error {
		if err := definitions.Remove(ctx, canvas, key.name); err != nil {
			return failed(err)
		}
		return a.write(cronChange{Canvas: canvas, Name: key.name, Removed: true}, func(w io.Writer) {
			_, _ = fmt.Fprintln(w, "removed", printable(key.name))
		})
	})
	return cmd
}

func (a *app) cronSwitchCommand(use, short string, enabled bool) *cobra.Command {
	cmd := &cobra.Command{Use: use + " --canvas … --name …", Short: short, Args: cobra.NoArgs}
	key := addCronKey(cmd)
	cmd.RunE = a.onDefinition(key, func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID) error {
		if err := definitions.SetEnabled(ctx, canvas, key.name, enabled); err != nil {
			return failed(err)
		}
		return a.write(cronChange{Canvas: canvas, Name: key.name, Enabled: &enabled}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%sd %s\n", use, printable(key.name))
		})
	})
	return cmd
}

func (a *app) cronNextCommand() *cobra.Command {
	var n int
	cmd := &cobra.Command{Use: "next --canvas … --name …", Short: "Show the next slots of a cron definition", Args: cobra.NoArgs}
	key := addCronKey(cmd)
	cmd.Flags().IntVar(&n, "count", 5, fmt.Sprintf("how many slots, from 1 to %d", cronchecker.MaxNext))
	next := a.onDefinition(key, func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID) error {
		slots, err := definitions.Next(ctx, canvas, key.name, n)
		if err != nil {
			return failed(err)
		}
		doc := struct {
			Slots []string `json:"slots"`
		}{}
		for _, slot := range slots {
			doc.Slots = append(doc.Slots, slot.Format(time.RFC3339))
		}
		return a.write(doc, func(w io.Writer) {
			for _, slot := range doc.Slots {
				_, _ = fmt.Fprintln(w, slot)
			}
		})
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if n < 1 || n > cronchecker.MaxNext {
			return badInput(fmt.Errorf("--count is %d: it must be from 1 to %d", n, cronchecker.MaxNext))
		}
		return next(cmd, args)
	}
	return cmd
}
