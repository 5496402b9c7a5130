package grid

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"eventsv2/eventqueue"
)

// NewInput makes the event that starts a run of a grid; every form of emit accepts it.
// value goes to the inputs of origin event: a json.RawMessage unchanged, anything else
// as its JSON.
//
// instance is the id of the grid instance, at most eventqueue.MaxNameBytes long. On one
// canvas, inputs of one instance run one at a time, in the order in which they were
// emitted. The id is the event's OrderingKey, so the inputs of different grids with the
// same id wait for each other, too; put the name of the grid into the id if they should
// not. Give an input an id of its own if it need not wait for any other.
//
// NewInput does not know the grid. If no running worker has it, the event waits for
// a worker that has it.
func NewInput(canvas eventqueue.CanvasID, grid, instance string, value any) (eventqueue.NewEvent, error) {
	if err := checkName(grid); err != nil {
		return eventqueue.NewEvent{}, fmt.Errorf("new input of grid %q: the name %w", grid, err)
	}
	if err := checkInstance(instance); err != nil {
		return eventqueue.NewEvent{}, fmt.Errorf("new input of grid %s: the instance %w", grid, err)
	}
	raw, ok := value.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(value); err != nil {
			return eventqueue.NewEvent{}, fmt.Errorf("new input of grid %s: write its value as JSON: %w", grid, err)
		}
	}
	return eventqueue.NewEvent{Canvas: canvas, Module: Module, Name: grid, Modifier: Modifier, Value: raw, OrderingKey: instance}, nil
}

// checkInstance applies the rules of ordering keys to an instance id.
func checkInstance(instance string) error {
	if instance == "" {
		return errors.New("is empty: give inputs that need not wait for each other an id each")
	}
	_, err := eventqueue.CheckHandler(eventqueue.HandlerKey{Module: instance, Name: "_", Modifier: "_"})
	return err
}

// NewInput is the function NewInput for a program that has the definition. It refuses
// a canvas that the grid is not for. It also refuses a value that does not fit an input
// of origin event, because the run would fail.
func (g *Grid) NewInput(canvas eventqueue.CanvasID, instance string, value any) (eventqueue.NewEvent, error) {
	event, err := NewInput(canvas, g.name, instance, value)
	if err != nil {
		return eventqueue.NewEvent{}, err
	}
	if g.canvas != (eventqueue.CanvasID{}) && g.canvas != canvas {
		return eventqueue.NewEvent{}, fmt.Errorf("new input of grid %s: it is for canvas %s, and not for %s", g.name, g.canvas, canvas)
	}
	if err := g.checkValue(event.Value); err != nil {
		return eventqueue.NewEvent{}, fmt.Errorf("new input of grid %s: %w", g.name, err)
	}
	return event, nil
}

// checkValue decodes an event's value into every input that comes from it.
func (g *Grid) checkValue(value json.RawMessage) error {
	var misfits []error
	for _, s := range g.steps {
		for i, slot := range s.uses.inputs {
			if s.inputs[i].origin != FromEvent {
				continue
			}
			if err := read(value, reflect.New(slot.is).Elem()); err != nil {
				misfits = append(misfits, fmt.Errorf("the event does not fit %s.%s.%s.%s: %w", keyActions, s.name, keyInputs, slot.name, err))
			}
		}
	}
	return errors.Join(misfits...)
}

func (s *step) fillParams(params reflect.Value) error {
	for i, slot := range s.uses.params {
		if s.params[i] == nil {
			continue
		}
		if err := strictly(s.params[i], params.Field(slot.index).Addr().Interface()); err != nil {
			return fmt.Errorf("param %s: %w", slot.name, err)
		}
	}
	return nil
}

// fillInputs sets the inputs of an action, from the event, from literals and from the
// outputs of other actions. outputs returns nil for an action without an output.
func (s *step) fillInputs(inputs reflect.Value, event json.RawMessage, outputs func(*step) json.RawMessage) error {
	for i, slot := range s.uses.inputs {
		field, from := inputs.Field(slot.index), s.inputs[i]
		var err error
		switch from.origin {
		case FromEvent:
			err = read(event, field)
		case FromAction:
			if output := outputs(from.from); output != nil {
				err = read(output, field)
			}
			if err != nil {
				err = fmt.Errorf("the output of %s cannot be read; if its code has changed, give the Go action %s another grid.Version: %w",
					from.from.name, from.from.uses.name, err)
			}
		case FromStatic:
			var value any
			if value, err = s.uses.casts[slot.name].of(from.literal); err == nil && value != nil {
				field.Set(reflect.ValueOf(value))
			}
		}
		if err != nil {
			return fmt.Errorf("input %s: %w", slot.name, err)
		}
	}
	return nil
}

// fill returns the function that sets all fields of a call.
func (s *step) fill(event json.RawMessage, outputs func(*step) json.RawMessage) filler {
	return func(inputs, params, services reflect.Value) error {
		for i, slot := range s.uses.services {
			if s.services[i].IsValid() {
				services.Field(slot.index).Set(s.services[i])
			}
		}
		if err := s.fillParams(params); err != nil {
			return err
		}
		return s.fillInputs(inputs, event, outputs)
	}
}
