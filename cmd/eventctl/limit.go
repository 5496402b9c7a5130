package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

func (a *app) limitCommand() *cobra.Command {
	return group("limit", "Limit how many events may run per minute and per day",
		a.limitSetCommand(), a.limitListCommand(), a.limitRemoveCommand(), a.limitReleaseCommand())
}

// limitFlags say which limit a command is about: that of a handler on a canvas, or
// of a whole canvas.
type limitFlags struct {
	canvas, module, name string
	silent               bool
}

func addLimitFlags(cmd *cobra.Command) *limitFlags {
	f := &limitFlags{}
	cmd.Flags().StringVar(&f.canvas, "canvas", "", "the canvas with this `uuid`")
	cmd.Flags().StringVar(&f.module, "module", "", "the handler in this module; without --module and --name: the whole canvas")
	cmd.Flags().StringVar(&f.name, "name", "", "the handler of this name")
	cmd.MarkFlagsRequiredTogether("module", "name")
	require(cmd, "canvas")
	addSilent(cmd, &f.silent)
	return f
}

func (f *limitFlags) scope(cmd *cobra.Command) (scope eventqueue.Scope, err error) {
	scope.Module, scope.Name = f.module, f.name
	if scope.Canvas, err = parseCanvas(f.canvas); err != nil {
		return scope, err
	}
	// An empty flag, as from an unset variable of a script, is not the whole canvas.
	if cmd.Flags().Changed("module") {
		err = scope.Validate()
	} else {
		err = scope.ValidateRate()
	}
	if err != nil {
		return scope, badInput(err)
	}
	return scope, nil
}

// limitDoc is a limit, in JSON. 0 is no such limit.
type limitDoc struct {
	Canvas    eventqueue.CanvasID `json:"canvas_id"`
	Module    string              `json:"module"`
	Name      string              `json:"name"`
	PerMinute int                 `json:"per_minute"`
	PerDay    int                 `json:"per_day"`
	Mode      eventqueue.RateMode `json:"mode"`
}

func limitDocOf(l eventqueue.RateLimit) limitDoc {
	return limitDoc{l.Canvas, l.Module, l.Name, l.PerMinute, l.PerDay, l.Mode}
}

// limitText names the scope of a limit.
func limitText(scope eventqueue.Scope) string {
	if scope.WholeCanvas() {
		return "canvas " + scope.Canvas.String()
	}
	return scope.String()
}

func (a *app) limitSetCommand() *cobra.Command {
	var limit eventqueue.RateLimit
	var mode string
	cmd := &cobra.Command{
		Use:   "set --canvas … [--module … --name …] [--per-minute N] [--per-day N]",
		Short: "Add a rate limit, or replace that of its scope",
		Long: "set limits how many events of a handler on a canvas, or of a whole canvas, may begin to run per minute\n" +
			"and per day (UTC): from the next claim on. It replaces the limit that is there, also the part that is not\n" +
			"given. When the new one allows more, the events that wait for their turn are notified.",
		Args: cobra.NoArgs,
	}
	flags := addLimitFlags(cmd)
	cmd.Flags().IntVar(&limit.PerMinute, "per-minute", 0, "at most `n` events in each minute")
	cmd.Flags().IntVar(&limit.PerDay, "per-day", 0, "at most `n` events on each day")
	cmd.Flags().StringVar(&mode, "mode", string(eventqueue.RateExact), "exact, or approximate, which is cheaper and may overshoot")
	cmd.MarkFlagsOneRequired("per-minute", "per-day")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if limit.Scope, err = flags.scope(cmd); err != nil {
			return err
		}
		for name, n := range map[string]int{"per-minute": limit.PerMinute, "per-day": limit.PerDay} {
			if cmd.Flags().Changed(name) && n < 1 {
				return badInput(fmt.Errorf("--%s is %d: it must be at least 1; to let nothing run, use pause or block", name, n))
			}
		}
		if limit.Mode = eventqueue.RateMode(mode); mode == "" {
			return badInput(errors.New("--mode is empty: it must be exact or approximate"))
		}
		if err := limit.Validate(); err != nil {
			return badInput(err)
		}
		return a.withLimits(cmd, flags.silent, func(limits *eventqueue.RateLimits) error {
			return a.setLimit(cmd, limits, limit, flags.silent)
		})
	}
	return cmd
}

// onLimit makes the body of a command about the limit that the flags name.
func (a *app) onLimit(flags *limitFlags, f func(cmd *cobra.Command, limits *eventqueue.RateLimits, scope eventqueue.Scope, silent bool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		scope, err := flags.scope(cmd)
		if err != nil {
			return err
		}
		return a.withLimits(cmd, flags.silent, func(limits *eventqueue.RateLimits) error {
			return f(cmd, limits, scope, flags.silent)
		})
	}
}

func (a *app) withLimits(cmd *cobra.Command, silent bool, f func(limits *eventqueue.RateLimits) error) error {
	return a.withQueue(cmd.Context(), silent, func(bell *doorbell) error {
		limits, err := eventqueue.NewRateLimits(bell.store, bell.queue)
		if err != nil {
			return failed(err)
		}
		return f(limits)
	})
}

func (a *app) setLimit(cmd *cobra.Command, limits *eventqueue.RateLimits, limit eventqueue.RateLimit, silent bool) error {
	notified, err := limits.Set(cmd.Context(), limit)
	if err != nil {
		return failed(err)
	}
	doc := struct {
		limitDoc
		Notified int `json:"notified"`
	}{limitDocOf(limit), notified}
	return a.write(doc, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, printableLines("limited "+limitText(limit.Scope)+ratesText(limit)+releasedText(notified, silent)))
	})
}

func ratesText(l eventqueue.RateLimit) (text string) {
	if l.PerMinute > 0 {
		text += fmt.Sprintf(", %d per minute", l.PerMinute)
	}
	if l.PerDay > 0 {
		text += fmt.Sprintf(", %d per day", l.PerDay)
	}
	return text + ", " + string(l.Mode)
}

func releasedText(notified int, silent bool) string {
	switch {
	case notified == 0:
		return ""
	case silent:
		return "; left to the relay to notify: " + plural(notified, "event")
	default:
		return "; notified " + plural(notified, "event")
	}
}

func (a *app) limitRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove --canvas … [--module … --name …]",
		Short: "Remove a rate limit, and notify the events that wait for their turn",
		Args:  cobra.NoArgs,
	}
	cmd.RunE = a.onLimit(addLimitFlags(cmd), a.removeLimit)
	return cmd
}

func (a *app) removeLimit(cmd *cobra.Command, limits *eventqueue.RateLimits, scope eventqueue.Scope, silent bool) error {
	removed, notified, err := limits.Remove(cmd.Context(), scope)
	if err != nil && removed {
		return failed(fmt.Errorf("the limit is removed, and then: %w", err))
	}
	if err != nil {
		return failed(err)
	}
	doc := struct {
		Canvas   eventqueue.CanvasID `json:"canvas_id"`
		Module   string              `json:"module"`
		Name     string              `json:"name"`
		Changed  bool                `json:"changed"`
		Notified int                 `json:"notified"`
	}{scope.Canvas, scope.Module, scope.Name, removed, notified}
	if !removed { // the document says it, too; text would say it twice
		text := limitText(scope) + " has no rate limit of its own" + releasedText(notified, silent)
		return errors.Join(notFound("%s", text), a.write(doc, func(io.Writer) {}))
	}
	return a.write(doc, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, printableLines("removed the limit of "+limitText(scope)+releasedText(notified, silent)))
	})
}

func (a *app) limitReleaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release --canvas … [--module … --name …]",
		Short: "Notify the events that wait for their turn, after limits were changed in SQL",
		Long: "release makes the events due that a rate limit has put off, and has them notified. What a limit still holds\n" +
			"back is put off once more. set and remove do this by themselves; it is for limits that were changed in SQL,\n" +
			"and for a set or a remove that was cut off.",
		Args: cobra.NoArgs,
	}
	cmd.RunE = a.onLimit(addLimitFlags(cmd), a.releaseLimited)
	return cmd
}

func (a *app) releaseLimited(cmd *cobra.Command, limits *eventqueue.RateLimits, scope eventqueue.Scope, silent bool) error {
	notified, err := limits.Release(cmd.Context(), scope)
	if err != nil {
		return failed(err)
	}
	doc := struct {
		Canvas   eventqueue.CanvasID `json:"canvas_id"`
		Module   string              `json:"module"`
		Name     string              `json:"name"`
		Notified int                 `json:"notified"`
	}{scope.Canvas, scope.Module, scope.Name, notified}
	return a.write(doc, func(w io.Writer) {
		text := limitText(scope) + ": no event waits because of a rate limit"
		if notified > 0 {
			text = "released what waited of " + limitText(scope) + releasedText(notified, silent)
		}
		_, _ = fmt.Fprintln(w, printableLines(text))
	})
}

func (a *app) limitListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list [--canvas …]", Short: "List rate limits, and what has been counted of them", Args: cobra.NoArgs}
	cmd.Flags().String("canvas", "", "only the canvas with this `uuid`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		only, err := onlyCanvas(cmd)
		if err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(store *pgstore.Store, _ service.Config) error {
			all, err := store.RateLimits(cmd.Context(), only)
			if err != nil {
				return failed(fmt.Errorf("list the rate limits: %w", err))
			}
			return a.writeLimits(all)
		})
	}
	return cmd
}

// limitStatusDoc is a limit with its counts, in JSON.
type limitStatusDoc struct {
	limitDoc
	MinuteUsed int64 `json:"minute_used"`
	DayUsed    int64 `json:"day_used"`
	Waiting    int64 `json:"waiting"`
}

func (a *app) writeLimits(all []eventqueue.RateStatus) error {
	doc := struct {
		Limits []limitStatusDoc `json:"limits"`
	}{make([]limitStatusDoc, 0, len(all))}
	rows := [][]string{{"CANVAS", "MODULE", "NAME", "MINUTE", "DAY", "MODE", "LATER"}}
	for _, l := range all {
		doc.Limits = append(doc.Limits, limitStatusDoc{limitDocOf(l.RateLimit), l.MinuteUsed, l.DayUsed, l.Waiting})
		module, name := "-", "-"
		if !l.WholeCanvas() {
			module, name = printable(l.Module), printable(l.Name)
		}
		rows = append(rows, []string{l.Canvas.String(), module, name, usedText(l.MinuteUsed, l.PerMinute), usedText(l.DayUsed, l.PerDay),
			string(l.Mode), fmt.Sprint(l.Waiting)})
	}
	return a.write(doc, func(w io.Writer) { writePage(w, rows, "rate limits", nil) })
}

func usedText(used int64, limit int) string {
	if limit == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", used, limit)
}
