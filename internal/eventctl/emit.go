package eventctl

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
	"eventsv2/internal/keymode"
	"eventsv2/internal/printing"
	"eventsv2/internal/priority"
	"eventsv2/internal/setup"
)

// emitFlags are the flags of emit.
type emitFlags struct {
	scope             *scopeFlags
	modifier, value   string
	delay, delayUntil string
	uniqueKey         string
	uniqueMode        string
	uniqueFor         time.Duration
	maxWait           time.Duration
	orderingKey       string
	priority          string
	attributes        []string
	file              string
	silent            bool
}

func emitCommand(p *program) *cobra.Command {
	f := &emitFlags{}
	cmd := &cobra.Command{
		Use:   "emit {--canvas … --module … --name … --value … | --file …}",
		Short: "Emit one event, or those of a file",
		Long: "Write events and publish their notifications. A file has one JSON object on each line:\n\n" +
			`  {"canvas_id": …, "module": …, "name": …, "modifier": …, "value": …}` + "\n\n" +
			"and may add \"delay\" (as in 90s) or \"delay_until\" (RFC 3339), \"unique_key\" with or without\n" +
			"\"unique_for\" (as in 24h), \"unique_mode\" and \"max_wait\", \"ordering_key\", \"priority\" (high, normal or\n" +
			"low), and \"attributes\", an object of strings. All lines are checked before the first is written;\n" +
			"then they are emitted 1,000 at a time. Handlers see values byte for byte.",
		Example: "  eventctl emit --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed --value '{\"order\": 1}'\n" +
			"  eventctl emit --canvas 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11 --module WORKER --name order_placed --value @order.json --delay 5m\n" +
			"  eventctl emit --file events.ndjson",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("file") {
				return p.emitFile(cmd.Context(), f)
			}
			return p.emitOne(cmd.Context(), f)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *emitFlags) add(cmd *cobra.Command) {
	f.scope = addScopeFlags(cmd, scopeUsage{canvasUsage, "module of the handler", "name of the handler"})
	flags := cmd.Flags()
	flags.StringVar(&f.modifier, "modifier", "_", "modifier of the handler")
	flags.StringVar(&f.value, "value", "", "`JSON`, @file to read it from, or - for standard input")
	flags.StringVar(&f.delay, "delay", "", "do not run it before this `duration` has passed, as in 5m")
	flags.StringVar(&f.delayUntil, "delay-until", "", "do not run it before this `time`, as in 2030-01-31T09:00:00Z")
	flags.StringVar(&f.uniqueKey, "unique-key", "", "emit nothing if an event with this `key` is queued on the canvas")
	flags.DurationVar(&f.uniqueFor, "unique-for", 0, "with --unique-key: also refuse the key for this `duration` after the event has ended, as in 24h")
	addChoice(cmd, &f.uniqueMode, "unique-mode", "", "with --unique-key: for how long the key stands for an event, or replace one that waits", keymode.Modes()...)
	flags.DurationVar(&f.maxWait, "max-wait", 0, "with --unique-mode replace: put the event off for this `duration` at most")
	flags.StringVar(&f.orderingKey, "ordering-key", "", "run it after those of the canvas with the same `key`, one at a time")
	addChoice(cmd, &f.priority, "priority", "", "which events go first while workers are behind", priority.All()...)
	addAttributes(cmd, &f.attributes, "an attribute, as `key=value`; may be repeated")
	flags.StringVar(&f.file, "file", "", "emit the events of this `file`; - is standard input")
	addSilent(cmd, &f.silent)
	for _, name := range []string{"canvas", "module", "name", "modifier", "value", "delay", "delay-until", "unique-key", "unique-for", "unique-mode", "max-wait", "ordering-key", "priority", "attribute"} {
		cmd.MarkFlagsMutuallyExclusive("file", name)
	}
	cmd.MarkFlagsMutuallyExclusive("delay", "delay-until")
	for _, name := range []string{"file", "value"} {
		if err := cmd.MarkFlagFilename(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
}

// emitted is the result of emit.
type emitted struct {
	Count    int                 `json:"emitted"`
	Replaced int                 `json:"replaced,omitempty"` // events that replaced one that waits, not among Count
	Repeats  int                 `json:"repeats,omitempty"`  // other events whose unique keys were taken, not among Count
	FirstID  *eventqueue.EventID `json:"first_id"`
	LastID   *eventqueue.EventID `json:"last_id"`
}

// add adds the result of a batch. The ids are of new events. If the only event was not
// new, the id is that of the event that has its key.
func (e *emitted) add(events []eventqueue.NewEvent, done []eventqueue.Emitted) {
	for i := range done {
		switch {
		case done[i].New:
			if e.Count++; e.Count == 1 {
				e.FirstID = &done[i].ID
			}
			e.LastID = &done[i].ID
		case events[i].UniqueMode == keymode.Replace:
			e.Replaced++
		default:
			e.Repeats++
		}
	}
	if e.Count == 0 && e.read() == 1 {
		e.FirstID, e.LastID = &done[0].ID, &done[0].ID
	}
}

// read returns how many events of the input have been emitted, or had a key of another.
func (e *emitted) read() int { return e.Count + e.Replaced + e.Repeats }

// text says what was emitted.
func (e *emitted) text() (text string) {
	switch {
	case e.Count == 0 && e.FirstID != nil && e.Replaced == 1:
		return fmt.Sprintf("emitted 0 events: event %s, which waits, was replaced", e.FirstID)
	case e.Count == 0 && e.FirstID != nil:
		return fmt.Sprintf("emitted 0 events: its key is that of event %s", e.FirstID)
	case e.Count == 0:
		text = "emitted 0 events"
	case e.Count == 1:
		text = fmt.Sprintf("emitted 1 event: id %s", e.FirstID)
	default:
		text = fmt.Sprintf("emitted %d events: ids %s to %s", e.Count, e.FirstID, e.LastID)
	}
	if e.Replaced > 0 {
		text += fmt.Sprintf("; %s replaced one that waits", printing.Plural(e.Replaced, "event"))
	}
	if e.Repeats > 0 {
		text += fmt.Sprintf("; %s had a key of another", printing.Plural(e.Repeats, "event"))
	}
	return text
}

func (p *program) writeEmitted(e emitted) error { return p.writeLine(e, e.text()) }

func (p *program) emitOne(ctx context.Context, f *emitFlags) error {
	for _, name := range []string{"canvas", "module", "name", "value"} {
		if !f.scope.has(name) {
			return badInput(fmt.Errorf("--%s is missing: give --canvas (or set EVENTS_CANVAS), --module, --name and --value for one event, or --file for many", name))
		}
	}
	config, err := p.config()
	if err != nil {
		return err
	}
	event, err := p.event(f, config)
	if err != nil {
		return badInput(err)
	}
	return p.withQueue(ctx, f.silent, func(c *connection) error {
		events := []eventqueue.NewEvent{event}
		made, err := c.emit(ctx, events)
		if err != nil {
			return failed(err)
		}
		var done emitted
		done.add(events, made)
		if question := didYouMean(ctx, c.store, event.Canvas, event.Handler()); question != "" {
			p.Warning(fmt.Errorf("no live worker has the handler %s: %s", event.Handler(), question))
		}
		return p.writeEmitted(done)
	})
}

func (f *emitFlags) given(flag string) bool { return f.scope.cmd.Flags().Changed(flag) }

// event makes the event that the flags describe, and applies the checks of the queue to it.
func (p *program) event(f *emitFlags, config setup.Config) (event eventqueue.NewEvent, err error) {
	canvas, err := parseCanvas(f.scope.canvas)
	if err != nil {
		return event, err
	}
	event = eventqueue.NewEvent{Canvas: canvas, Module: f.scope.module, Name: f.scope.name, Modifier: f.modifier,
		UniqueKey: f.uniqueKey, UniqueMode: f.uniqueMode, UniqueFor: f.uniqueFor, MaxWait: f.maxWait, OrderingKey: f.orderingKey, Priority: f.priority}
	if f.given("unique-key") && f.uniqueKey == "" {
		return event, errors.New("--unique-key is empty: leave it out for an event that may be repeated")
	}
	if f.given("unique-mode") && f.uniqueMode == "" {
		return event, errors.New("--unique-mode is empty: leave it out for until_end")
	}
	if f.given("ordering-key") && f.orderingKey == "" {
		return event, errors.New("--ordering-key is empty: leave it out for an event that may run beside all others")
	}
	if f.given("priority") && f.priority == "" {
		return event, errors.New("--priority is empty: leave it out for an event of normal priority")
	}
	if event.Attributes, err = parseAttributes(f.attributes); err != nil {
		return event, err
	}
	if err := f.delays(&event); err != nil {
		return event, err
	}
	if event.Value, err = p.value(f.value, config.MaxValueBytes); err != nil {
		return event, err
	}
	var invalid *eventqueue.InvalidError
	if err := config.Limits().CheckEvents([]eventqueue.NewEvent{event}, time.Now()); errors.As(err, &invalid) {
		return event, fmt.Errorf("%s: %s", invalid.Field, invalid.Problem)
	}
	return event, nil
}

func (f *emitFlags) delays(event *eventqueue.NewEvent) (err error) {
	if f.given("delay") {
		if event.Delay, err = time.ParseDuration(f.delay); err != nil {
			return fmt.Errorf("--delay %q is not a duration: write it like 30s, 10m or 1h30m", f.delay)
		}
	}
	if f.given("delay-until") {
		if event.DelayUntil, err = time.Parse(time.RFC3339, f.delayUntil); err != nil {
			return fmt.Errorf("--delay-until %q is not a time: write it like 2030-01-31T09:00:00Z", f.delayUntil)
		}
	}
	return nil
}

// value reads the value that --value gives, but at most one byte more than the limit, which
// is enough to refuse it.
func (p *program) value(text string, maxBytes int) (json.RawMessage, error) {
	path, isFile := strings.CutPrefix(text, "@")
	var from io.Reader
	switch {
	case text == "-":
		from, path = p.stdin, "standard input"
	case isFile:
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--value: %w", err)
		}
		defer func() { _ = file.Close() }() // nothing was written to it
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
