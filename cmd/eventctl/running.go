package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

func (a *app) runningCommand() *cobra.Command {
	return group("running", "Limit how many events run at once",
		a.runningListCommand(), a.runningSetCommand(), a.runningRemoveCommand())
}

// runningFlags say what a limit is for.
type runningFlags struct {
	scope    *scopeFlags
	key      string
	everyKey bool
	silent   bool
}

func addRunning(cmd *cobra.Command) *runningFlags {
	f := &runningFlags{scope: addScope(cmd, false)}
	for name, usage := range map[string]string{"canvas": "`uuid` of the canvas", "module": "only of the handler in this module",
		"name": "only of the handler of this name"} {
		cmd.Flags().Lookup(name).Usage = usage
	}
	cmd.Flags().StringVar(&f.key, "key", "", "only of this ordering `key`")
	cmd.Flags().BoolVar(&f.everyKey, "every-key", false, "of each ordering key that has no limit of its own")
	require(cmd, "canvas")
	cmd.MarkFlagsRequiredTogether("module", "name")
	cmd.MarkFlagsMutuallyExclusive("key", "module", "every-key")
	addSilent(cmd, &f.silent)
	return f
}

// limit is what the flags name. One that is given must name something.
func (f *runningFlags) limit() (limit eventqueue.RunningLimit, err error) {
	flags := f.scope.cmd.Flags()
	for _, name := range []string{"module", "name", "key"} {
		if flags.Changed(name) && flags.Lookup(name).Value.String() == "" {
			return limit, badInput(fmt.Errorf("--%s is empty", name))
		}
	}
	limit = eventqueue.RunningLimit{Module: f.scope.module, Name: f.scope.name, Key: f.key, EveryKey: f.everyKey}
	if limit.Canvas, err = parseCanvas(f.scope.canvas); err != nil {
		return limit, err
	}
	if err := limit.Validate(); err != nil {
		return limit, badInput(err)
	}
	return limit, nil
}

// runningDoc is a limit, in JSON.
type runningDoc struct {
	Canvas   eventqueue.CanvasID `json:"canvas_id"`
	Module   string              `json:"module,omitempty"`
	Name     string              `json:"name,omitempty"`
	Key      string              `json:"ordering_key,omitempty"`
	EveryKey bool                `json:"every_key,omitempty"`
	Max      int                 `json:"max_running"`
}

func runningDocOf(l eventqueue.RunningLimit) runningDoc {
	return runningDoc{l.Canvas, l.Module, l.Name, l.Key, l.EveryKey, l.Max}
}

func (a *app) runningSetCommand() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "set --canvas … [--module … --name … | --key … | --every-key] --max …",
		Short: "Let so many events run at once: of a canvas, of a handler on it, or of an ordering key",
		Long: "set limits the events that begin from now on; those that run are not stopped and do not count. When\n" +
			"it is more than before, events that wait are notified as far as there is room. One event of an\n" +
			"ordering key runs at a time where nothing else is set.",
		Args: cobra.NoArgs,
	}
	f := addRunning(cmd)
	cmd.Flags().IntVar(&most, "max", 0, "`n` events at once, from 1 on")
	require(cmd, "max")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := f.limit()
		if err != nil {
			return err
		}
		if limit.Max = most; most < 1 || int(int32(most)) != most {
			return badInput(fmt.Errorf("--max is %d: it must be from 1 to 2147483647; to let none run, pause or block the handler", most))
		}
		return a.withRunningLimits(cmd, f.silent, func(limits *eventqueue.RunningLimits) error {
			if err := limits.Set(cmd.Context(), limit); err != nil {
				return failed(err)
			}
			return a.write(runningDocOf(limit), func(w io.Writer) {
				_, _ = fmt.Fprintln(w, printableLines(fmt.Sprintf("%d at once of %s", limit.Max, limit)))
			})
		})
	}
	return cmd
}

func (a *app) withRunningLimits(cmd *cobra.Command, silent bool, f func(limits *eventqueue.RunningLimits) error) error {
	return a.withQueue(cmd.Context(), silent, func(bell *doorbell) error {
		limits, err := eventqueue.NewRunningLimits(bell.store, bell.queue)
		if err != nil {
			return failed(err)
		}
		return f(limits)
	})
}

func (a *app) runningRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove --canvas … [--module … --name … | --key … | --every-key]",
		Short: "Remove a limit, and notify the events that may run by that",
		Args:  cobra.NoArgs,
	}
	f := addRunning(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := f.limit()
		if err != nil {
			return err
		}
		return a.withRunningLimits(cmd, f.silent, func(limits *eventqueue.RunningLimits) error {
			was, err := limits.Remove(cmd.Context(), limit)
			if err != nil {
				return failed(err)
			}
			doc := struct {
				runningDoc
				Removed bool `json:"removed"`
			}{runningDocOf(limit), was}
			if !was {
				return errors.Join(notFound("%s", printableLines(limit.String()+" has no limit")), a.write(doc, func(io.Writer) {}))
			}
			return a.write(doc, func(w io.Writer) { _, _ = fmt.Fprintln(w, printableLines("no limit any more of "+limit.String())) })
		})
	}
	return cmd
}

func (a *app) runningListCommand() *cobra.Command {
	var canvas string
	cmd := &cobra.Command{Use: "list --canvas …", Short: "List the limits of a canvas", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&canvas, "canvas", "", "`uuid` of the canvas")
	require(cmd, "canvas")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		id, err := parseCanvas(canvas)
		if err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, _ service.Config) error {
			limits, err := store.RunningLimits(cmd.Context(), id)
			if err != nil {
				return failed(fmt.Errorf("list the limits of canvas %s: %w", id, err))
			}
			return a.writeRunningLimits(limits)
		})
	}
	return cmd
}

func (a *app) writeRunningLimits(limits []eventqueue.RunningLimit) error {
	doc := struct {
		Limits []runningDoc `json:"limits"`
	}{make([]runningDoc, 0, len(limits))}
	rows := [][]string{{"MAX", "OF"}}
	for _, l := range limits {
		doc.Limits = append(doc.Limits, runningDocOf(l))
		rows = append(rows, []string{strconv.Itoa(l.Max), printable(l.String())})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "limits", nil) })
}
