package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/internal/service"
)

// emitFlags are the flags of emit.
type emitFlags struct {
	scope             *scopeFlags
	modifier, value   string
	delay, delayUntil string
	uniqueKey         string
	uniqueFor         time.Duration
	orderingKey       string
	file              string
	silent            bool
}

func (a *app) emitCommand() *cobra.Command {
	f := &emitFlags{}
	cmd := &cobra.Command{
		Use:   "emit {--canvas … --module … --name … --value … | --file …}",
		Short: "Emit one event, or those of a file",
		Long: "emit writes events and publishes their notifications. A file has one JSON object on each line:\n\n" +
			`  {"canvas_id": …, "module": …, "name": …, "modifier": …, "value": …}` + "\n\n" +
			"and may add \"delay\" (as in 90s) or \"delay_until\" (RFC 3339), \"unique_key\" with or without\n" +
			"\"unique_for\" (as in 24h), and \"ordering_key\". All lines are checked before the first is written;\n" +
			"then they go out 1,000 at a time. Values arrive byte for byte.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("file") {
				return a.emitFile(cmd.Context(), f)
			}
			return a.emitOne(cmd.Context(), cmd, f)
		},
	}
	f.scope = addScope(cmd, false)
	for name, usage := range map[string]string{"canvas": "`uuid` of the canvas", "module": "module of the handler", "name": "name of the handler"} {
		cmd.Flags().Lookup(name).Usage = usage
	}
	cmd.Flags().StringVar(&f.modifier, "modifier", "_", "modifier of the handler")
	cmd.Flags().StringVar(&f.value, "value", "", "`JSON`, @file to read it from, or - for standard input")
	cmd.Flags().StringVar(&f.delay, "delay", "", "run it not before this `duration` has passed, as in 5m")
	cmd.Flags().StringVar(&f.delayUntil, "delay-until", "", "run it not before this `time`, as in 2030-01-31T09:00:00Z")
	cmd.Flags().StringVar(&f.uniqueKey, "unique-key", "", "emit nothing if an event with this `key` is queued on the canvas")
	cmd.Flags().DurationVar(&f.uniqueFor, "unique-for", 0, "nor for this `duration` after its end, as in 24h")
	cmd.Flags().StringVar(&f.orderingKey, "ordering-key", "", "run it after those of the canvas with the same `key`, one at a time")
	cmd.Flags().StringVar(&f.file, "file", "", "emit the events of this `file`; - is standard input")
	addSilent(cmd, &f.silent)
	for _, name := range []string{"canvas", "module", "name", "modifier", "value", "delay", "delay-until", "unique-key", "unique-for", "ordering-key"} {
		cmd.MarkFlagsMutuallyExclusive("file", name)
	}
	cmd.MarkFlagsMutuallyExclusive("delay", "delay-until")
	return cmd
}

func addSilent(cmd *cobra.Command, silent *bool) {
	cmd.Flags().BoolVar(silent, "no-notify", false, "publish nothing: the relay notifies; needs no Pub/Sub")
}

// emitted is the result of emit.
type emitted struct {
	Count   int                 `json:"emitted"`
	Repeats int                 `json:"repeats,omitempty"` // events that were there already, not among Count
	FirstID *eventqueue.EventID `json:"first_id"`
	LastID  *eventqueue.EventID `json:"last_id"`
}

// add counts a batch. The ids are those of new events; when the only event of all is
// none, of the one that was there.
func (e *emitted) add(events []eventqueue.Emitted) {
	for i := range events {
		if !events[i].New {
			e.Repeats++
			continue
		}
		if e.Count++; e.Count == 1 {
			e.FirstID = &events[i].ID
		}
		e.LastID = &events[i].ID
	}
	if e.Count == 0 && e.Repeats == 1 {
		e.FirstID, e.LastID = &events[0].ID, &events[0].ID
	}
}

func (a *app) reportEmitted(e emitted) error {
	return a.write(e, func(w io.Writer) {
		switch {
		case e.Count == 0 && e.FirstID != nil:
			_, _ = fmt.Fprintf(w, "emitted 0 events: its key is that of event %s\n", e.FirstID)
			return
		case e.Count == 0:
			_, _ = fmt.Fprint(w, "emitted 0 events")
		case e.Count == 1:
			_, _ = fmt.Fprintf(w, "emitted 1 event: id %s", e.FirstID)
		default:
			_, _ = fmt.Fprintf(w, "emitted %d events: ids %s to %s", e.Count, e.FirstID, e.LastID)
		}
		if e.Repeats > 0 {
			_, _ = fmt.Fprintf(w, "; %s had a key of another", plural(e.Repeats, "event"))
		}
		_, _ = fmt.Fprintln(w)
	})
}

func (a *app) emitOne(ctx context.Context, cmd *cobra.Command, f *emitFlags) error {
	for _, name := range []string{"canvas", "module", "name", "value"} {
		if !cmd.Flags().Changed(name) {
			return badInput(fmt.Errorf("--%s is missing: give --canvas, --module, --name and --value for one event, or --file for many", name))
		}
	}
	config, err := a.config()
	if err != nil {
		return err
	}
	event, err := a.event(cmd, f, config)
	if err != nil {
		return badInput(err)
	}
	return a.withQueue(ctx, f.silent, func(bell *doorbell) error {
		events, err := bell.emit(ctx, []eventqueue.NewEvent{event})
		if err != nil {
			return failed(err)
		}
		var done emitted
		done.add(events)
		return a.reportEmitted(done)
	})
}

// event makes the event that the flags describe and checks it as the queue will.
func (a *app) event(cmd *cobra.Command, f *emitFlags, config service.Config) (event eventqueue.NewEvent, err error) {
	canvas, err := parseCanvas(f.scope.canvas)
	if err != nil {
		return event, err
	}
	event = eventqueue.NewEvent{Canvas: canvas, Module: f.scope.module, Name: f.scope.name, Modifier: f.modifier,
		UniqueKey: f.uniqueKey, UniqueFor: f.uniqueFor, OrderingKey: f.orderingKey}
	if cmd.Flags().Changed("unique-key") && f.uniqueKey == "" {
		return event, errors.New("--unique-key is empty: leave it out for an event that may be repeated")
	}
	if cmd.Flags().Changed("ordering-key") && f.orderingKey == "" {
		return event, errors.New("--ordering-key is empty: leave it out for an event that is in no line")
	}
	if cmd.Flags().Changed("delay") {
		if event.Delay, err = time.ParseDuration(f.delay); err != nil {
			return event, fmt.Errorf("--delay %q is not a duration: write it like 30s, 10m or 1h30m", f.delay)
		}
	}
	if cmd.Flags().Changed("delay-until") {
		if event.DelayUntil, err = time.Parse(time.RFC3339, f.delayUntil); err != nil {
			return event, fmt.Errorf("--delay-until %q is not a time: write it like 2030-01-31T09:00:00Z", f.delayUntil)
		}
	}
	if event.Value, err = a.value(f.value, config.MaxValueBytes); err != nil {
		return event, err
	}
	var invalid *eventqueue.InvalidError
	if err := config.Limits().CheckEvents([]eventqueue.NewEvent{event}, time.Now()); errors.As(err, &invalid) {
		return event, fmt.Errorf("%s: %s", invalid.Field, invalid.Problem)
	}
	return event, nil
}

// value reads what --value names. One byte over the limit is enough to have it
// refused, however large it is.
func (a *app) value(text string, maxBytes int) (json.RawMessage, error) {
	path, isFile := strings.CutPrefix(text, "@")
	var from io.Reader
	switch {
	case text == "-":
		from, path = a.stdin, "standard input"
	case isFile:
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--value: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	default:
		return json.RawMessage(text), nil
	}
	value, err := io.ReadAll(io.LimitReader(from, int64(maxBytes)+1))
	if err != nil {
		return nil, fmt.Errorf("--value: read %s: %w", path, err)
	}
	if len(value) > maxBytes {
		return nil, fmt.Errorf("value: %s is longer than the limit of %d bytes; keep large data elsewhere and emit a reference", path, maxBytes)
	}
	return value, nil
}
