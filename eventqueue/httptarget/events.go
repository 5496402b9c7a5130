package httptarget

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/internal/handlingkey"
	"eventsv2/internal/yamlfile"
)

// Keys of events that have several handlers.
const (
	keyEvent  = "event"
	keyEvents = "events"
)

const (
	// maxHandlers is how many handlers an event may have, with those of its parents: one transaction emits an event for each.
	maxHandlers = 50
	// maxPairs bounds the pairs of an event and a handler in a file: the worker has a handler for each.
	maxPairs = 10_000
)

// dispatch is a handling key whose events go to handlers of the file.
type dispatch struct {
	key  string
	line int      // that names it first
	to   []*Entry // the handlers of the key, behind those of its parents
}

// event reads the handling key of a handler that has one in place of module and modifier.
func (p *parser) event(fields map[string]*yaml.Node, e *Entry) bool {
	whole := p.require(e.Line, fields, keyName, keyURL)
	for _, key := range []string{keyModule, keyModifier} {
		if n := fields[key]; n != nil {
			p.problems.add(n.Line, "%s is given beside %s: remove it, since %s is the module and the name of the events with a dot between them", key, keyEvent, keyEvent)
			whole = false
		}
	}
	event, ok := p.handlingKey(fields, keyEvent)
	if n, is := p.text(fields, keyName); is {
		if err := handlingkey.CheckPart(n.Value); err != nil {
			p.problems.add(n.Line, "%s %s", keyName, err)
			is = false
		}
		e.Key.Name = n.Value
		whole = whole && is
	} else {
		whole = false
	}
	e.Event, e.Key.Modifier = event, event
	e.Key.Module, _ = handlingkey.Split(event)
	return whole && ok
}

func (p *parser) handlingKey(fields map[string]*yaml.Node, field string) (key string, ok bool) {
	n, ok := p.text(fields, field)
	if !ok {
		return "", false
	}
	if err := handlingkey.Check(n.Value); err != nil {
		p.problems.add(n.Line, "%s %s", field, err)
		return "", false
	}
	return n.Value, true
}

// declared reads the events that have handlers of their parents only, by their lines.
func (p *parser) declared(fields map[string]*yaml.Node) map[string]int {
	list := yamlfile.Resolve(fields[keyEvents])
	switch {
	case list == nil:
		return nil
	case list.Kind != yaml.SequenceNode:
		p.problems.add(list.Line, "%q is %s: make it a list of handling keys like [order.cancelled]", keyEvents, yamlfile.KindOf(list))
		return nil
	}
	lines := map[string]int{}
	for _, item := range list.Content {
		const field = "an event"
		key, ok := p.handlingKey(map[string]*yaml.Node{field: item}, field)
		if first, twice := lines[key]; twice {
			p.problems.add(item.Line, "the event %s is there twice, first in line %d: remove one of the two", key, first)
		} else if ok {
			lines[key] = item.Line
		}
	}
	return lines
}

// dispatches returns the events that handlers name, and those that are declared, with their handlers. Nothing is made of a file
// that would have too many.
func (p *parser) dispatches(declared map[string]int) (dispatches []dispatch) {
	lines := map[string]int{}
	for key, entries := range p.onEvent {
		lines[key] = entries[0].Line
	}
	for key, line := range declared {
		if first, named := lines[key]; !named || line < first {
			lines[key] = line
		}
	}
	pairs := 0
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		chain := handlingkey.Chain(key)
		before := pairs
		for _, of := range chain {
			pairs += len(p.onEvent[of])
		}
		if pairs > maxPairs {
			p.problems.add(lines[key], "with the event %s there are more than %d pairs of an event and a handler, those of its parents included: divide the handlers among the files of several workers", key, maxPairs)
			return nil
		}
		d := dispatch{key: key, line: lines[key], to: make([]*Entry, 0, pairs-before)}
		for _, of := range chain {
			d.to = append(d.to, p.onEvent[of]...)
		}
		p.checkDispatch(d, lines)
		dispatches = append(dispatches, d)
	}
	return dispatches
}

func (p *parser) checkDispatch(d dispatch, lines map[string]int) {
	if len(d.to) == 0 && !p.incomplete {
		p.problems.add(d.line, "the event %s has no handler, and its parents have none: add one with %q, or remove the event", d.key, keyEvent+": "+d.key)
	}
	if line, taken := p.plain[d.at()]; taken {
		p.problems.add(line, "handler %s is that of the event %s, which has handlers by %q, as in line %d: give this one a name of its own, and %q in place of module and modifier",
			d.at(), d.key, keyEvent, d.line, keyEvent+": "+d.key)
	}
	names := map[string]bool{}
	for _, e := range d.to {
		names[e.Key.Name] = true
		if line, is := lines[e.Key.Module+"."+e.Key.Name]; is && e.Event == d.key {
			p.problems.add(e.Line, "handler %s is called like the event %s.%s, in line %d, so that a pause could not distinguish them: give it another name",
				e.Key.Name, e.Key.Module, e.Key.Name, line)
		}
		if line, is := p.plainNames[moduleName{e.Key.Module, e.Key.Name}]; !is {
			p.once(e, d.of(e))
		} else if e.Event == d.key {
			p.problems.add(e.Line, "handler %s of the event %s has the module and the name of the handler in line %d, so that a pause of %s/%s would hold both: give one of the two another name",
				e.Key.Name, e.Event, line, e.Key.Module, e.Key.Name)
		}
	}
	if len(names) > maxHandlers {
		p.problems.add(d.line, "the event %s has %d handlers, those of its parents included: the limit is %d", d.key, len(names), maxHandlers)
	}
}

// at returns the key under which the events are emitted.
func (d dispatch) at() eventqueue.HandlerKey {
	module, name := handlingkey.Split(d.key)
	return eventqueue.HandlerKey{Module: module, Name: name, Modifier: handlingkey.None}
}

// of returns the key of the events that a handler gets of its own.
func (d dispatch) of(e *Entry) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: e.Key.Module, Name: e.Key.Name, Modifier: d.key}
}

// dispatchPolicy outlasts a database that is away for a quarter of an hour: a dispatch calls no target, which could be spared.
func dispatchPolicy() eventqueue.Policy {
	return eventqueue.Policy{MaxRetries: new(20), Backoff: eventqueue.Exponential(time.Second, time.Minute)}
}

// register registers the targets of the handlers, each for the events that it gets of its own, and what emits these. On a canvas
// for which there is no target, the events are left to workers that have one, like those of any handler.
func (d dispatch) register(handlers *eventqueue.Handlers, runners map[*Entry]eventqueue.Handler, fail func(*Entry, error)) {
	all := &dispatcher{onCanvas: map[eventqueue.CanvasID][]eventqueue.HandlerKey{}}
	for _, e := range d.to {
		if runners[e] == nil {
			continue // its mistake has been reported
		}
		fail(e, e.registerAt(handlers, d.of(e), runners[e]))
		if e.Canvas == (eventqueue.CanvasID{}) {
			all.everywhere = append(all.everywhere, d.of(e))
		} else {
			all.onCanvas[e.Canvas] = append(all.onCanvas[e.Canvas], d.of(e))
		}
	}
	if len(all.everywhere) > 0 {
		fail(d.to[0], handlers.Register(d.at(), all, dispatchPolicy()))
		return
	}
	for canvas := range all.onCanvas {
		fail(d.to[0], handlers.RegisterOn(canvas, d.at(), all, dispatchPolicy()))
	}
}

// dispatcher runs the events of a handling key: it emits one for each handler, in the transaction that completes the event.
type dispatcher struct {
	everywhere []eventqueue.HandlerKey
	onCanvas   map[eventqueue.CanvasID][]eventqueue.HandlerKey
}

// to returns the handlers on a canvas.
func (d *dispatcher) to(canvas eventqueue.CanvasID) []eventqueue.HandlerKey {
	keys := slices.Clone(d.everywhere)
	for _, key := range d.onCanvas[canvas] {
		if !slices.Contains(keys, key) { // it has a target of its own here
			keys = append(keys, key)
		}
	}
	return keys
}

// Handle implements eventqueue.Handler.
func (d *dispatcher) Handle(ctx context.Context, run *eventqueue.Run) error {
	var events []eventqueue.NewEvent
	for _, key := range d.to(run.Canvas) {
		events = append(events, eventqueue.NewEvent{Canvas: run.Canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: run.Value})
	}
	err := run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		_, err := tx.EmitHeirs(ctx, events...)
		return err
	})
	if errors.As(err, new(*eventqueue.InvalidError)) {
		return eventqueue.Permanent(err) // a value that SQL has emitted, and that is too large
	}
	return err
}
