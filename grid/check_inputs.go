package grid

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"eventsv2/internal/article"
	"eventsv2/internal/yamlfile"
)

// inputs reads where the inputs of an action come from.
func (c *checker) inputs(s *step, sec section) {
	if s.uses == nil {
		// The action of each origin is checked all the same.
		for _, e := range c.entries(sec.n, sec.path, "the keys are the names of its inputs") {
			if c.full() {
				return
			}
			c.input(s, nil, sec.path+"."+e.Key.Value, e.Key.Value, e.Value)
		}
		return
	}
	missing := c.eachSlot(s, sec, "input", func(a *goAction) []slot { return a.inputs },
		func(i int, at string, value *yaml.Node) {
			slot := &s.uses.inputs[i]
			s.inputs[i] = c.input(s, slot, at, slot.name, value)
		})
	for _, slot := range missing {
		c.at(sec.path+"."+slot.name)(sec.line, "is missing: give it an origin, which may be %s", originsOf(slot))
	}
}

// input reads the origin of one input. slot is nil when the Go action is not known.
func (c *checker) input(s *step, slot *slot, path, name string, n *yaml.Node) source {
	line := n.Line
	n = yamlfile.Resolve(n)
	fields, ok := yamlfile.Mapping(n, "an input", c.at(path), keyOrigin, keyAction, keyStatic)
	if !ok {
		return source{}
	}
	text, ok := c.text(line, fields[keyOrigin], path+"."+keyOrigin)
	if !ok {
		return source{}
	}
	origin := Origin(text)
	switch origin {
	case FromAction, FromEvent, FromStatic:
	default:
		c.at(path+"."+keyOrigin)(fields[keyOrigin].Line, "%q is no origin: it is action, event or static", text)
		return source{}
	}
	for _, key := range []string{keyAction, keyStatic} {
		if value := fields[key]; value != nil && key != text {
			c.at(path+"."+key)(value.Line, "it does not belong to origin %s: remove it, or make the origin %s", origin, key)
		}
	}
	if slot != nil && !slot.allows(origin) {
		c.at(path+"."+keyOrigin)(fields[keyOrigin].Line, "the Go action %s does not take %s from %s: it takes it from %s",
			s.uses.name, name, origin, originsOf(*slot))
		return source{}
	}
	switch origin {
	case FromAction:
		return c.fromAction(s, slot, path, name, line, fields[keyAction])
	case FromStatic:
		return c.fromStatic(s, slot, path, line, fields[keyStatic])
	default:
		return source{origin: FromEvent}
	}
}

func (c *checker) fromAction(s *step, slot *slot, path, name string, line int, n *yaml.Node) source {
	path += "." + keyAction
	other, ok := c.text(line, n, path)
	if !ok {
		return source{}
	}
	from := c.steps[other]
	if from == nil {
		c.at(path)(n.Line, "there is no action %q in this grid: there are %s", other, orNone(c.namesInOrder()))
		return source{}
	}
	s.takes = append(s.takes, edge{from: from, input: name, line: n.Line})
	if slot != nil && from.uses != nil && !slot.takes(from.uses.out) {
		c.at(path)(n.Line, "the output of %s is %s: the input is %s", other, article.With(from.uses.out), article.With(slot.is))
	}
	return source{origin: FromAction, from: from}
}

func (c *checker) fromStatic(s *step, slot *slot, path string, line int, n *yaml.Node) source {
	path += "." + keyStatic
	if n == nil {
		c.at(path)(line, "is missing: give the literal")
		return source{}
	}
	literal, ok := c.literal(n, path)
	if !ok || slot == nil {
		return source{}
	}
	err := guard(func() error {
		_, err := s.uses.casts[slot.name].of(literal)
		return err
	})
	if err != nil {
		c.at(path)(n.Line, "it cannot be made into %s: %s", article.With(slot.is), err)
	}
	return source{origin: FromStatic, literal: literal}
}

func (c *checker) namesInOrder() []string {
	names := make([]string, len(c.order))
	for i, s := range c.order {
		names[i] = s.name
	}
	return names
}

func originsOf(s slot) string {
	names := make([]string, len(s.origins))
	for i, o := range s.origins {
		names[i] = string(o)
	}
	return strings.Join(names, ", ")
}

// sorted returns the actions in an order in which each comes after the actions whose
// outputs it takes, and otherwise in the order of the file. It reports each cycle.
func (c *checker) sorted() []*step {
	var done, way []*step
	var visit func(s *step)
	visit = func(s *step) {
		way = append(way, s)
		for _, e := range s.takes {
			if i := slices.Index(way, e.from); i >= 0 {
				c.cycle(way[i:], e)
			} else if !slices.Contains(done, e.from) {
				visit(e.from)
			}
		}
		way = way[:len(way)-1]
		done = append(done, s)
	}
	for _, s := range c.order {
		if !slices.Contains(done, s) {
			visit(s)
		}
	}
	return done
}

// cycle reports a cycle: each action on the way takes an output of the next one, and
// the last takes one of the first, by e.
func (c *checker) cycle(way []*step, e edge) {
	names := make([]string, 0, len(way)+1)
	for _, s := range append(slices.Clone(way), e.from) {
		names = append(names, s.name)
	}
	at := keyActions + "." + way[len(way)-1].name + "." + keyInputs + "." + e.input
	c.at(at)(e.line, "cycle: %s: each takes from the next, so none can run first", strings.Join(names, " → "))
}
