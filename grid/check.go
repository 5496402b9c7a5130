package grid

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/internal/article"
	"eventsv2/internal/yamlfile"
)

// Keys of a definition.
const (
	keyGrid    = "grid"
	keyCanvas  = "canvas"
	keyActions = "actions"
	keyUse     = "use"
	keyInject  = "inject"
	keyParams  = "params"
	keyInputs  = "inputs"
	keyOrigin  = "origin"
	keyAction  = "action"
	keyStatic  = "static"
)

// checker reads a definition. It continues after a mistake, so that all mistakes are
// reported together. Each mistake is reported once, where it was made: the checker does
// not check anything that depends on it.
type checker struct {
	literals
	actions  *Actions
	services Services

	steps map[string]*step // all steps in the file, valid or not
	order []*step          // as in the file
}

func (c *checker) grid(data []byte) *Grid {
	if c.actions == nil {
		c.at("")(1, "there are no Go actions to check it against: give grid.Parse a registry")
		return nil
	}
	root := yamlfile.Document(yamlfile.Source{
		Data:     data,
		MaxBytes: MaxFileBytes,
		Empty:    "name the grid and list its actions",
		Second:   "put each grid into a file of its own",
	}, c.at(""))
	if root == nil {
		return nil
	}
	fields, ok := yamlfile.Mapping(root, "the file", c.at(""), keyGrid, keyCanvas, keyActions)
	if !ok {
		return nil
	}
	g := &Grid{file: c.file}
	g.name, ok = c.text(root.Line, fields[keyGrid], keyGrid)
	if err := checkName(g.name); ok && err != nil {
		c.at(keyGrid)(fields[keyGrid].Line, "the name %s", err)
	}
	c.canvas(fields[keyCanvas], &g.canvas)
	c.allActions(root, fields[keyActions])
	g.steps = c.sorted()
	if len(c.found) == 0 {
		for _, s := range g.steps {
			s.fingerprint = s.identity()
		}
	}
	return g
}

func (c *checker) canvas(n *yaml.Node, into *eventqueue.CanvasID) {
	if n == nil {
		return
	}
	text, ok := c.text(n.Line, n, keyCanvas)
	if !ok {
		return
	}
	canvas, err := eventqueue.ParseCanvasID(text)
	switch {
	case err != nil:
		c.at(keyCanvas)(n.Line, "%q is not a uuid: write it as 8-4-4-4-12 hexadecimal digits", text)
	case canvas == (eventqueue.CanvasID{}):
		c.at(keyCanvas)(n.Line, "it is all zeros, which no canvas is: leave it out to mean every canvas")
	default:
		*into = canvas
	}
}

// allActions reads every action, and then the inputs that they take from each other.
func (c *checker) allActions(root, n *yaml.Node) {
	if n == nil {
		c.at(keyActions)(root.Line, "is missing: give the grid at least one action")
		return
	}
	entries := c.entries(n, keyActions, "the names of the actions are its keys")
	if len(entries) == 0 && len(c.found) == 0 {
		c.at(keyActions)(n.Line, "there are none: give the grid at least one action")
	}
	if len(entries) > MaxActions {
		c.at(keyActions)(entries[MaxActions].Key.Line, "there are %d: the limit is %d; make more than one grid of them", len(entries), MaxActions)
		return
	}
	for _, e := range entries {
		s := &step{name: e.Key.Value, serviceNames: map[string]string{}}
		c.steps[s.name] = s
		c.order = append(c.order, s)
	}
	type inputs struct {
		of *step
		at section
	}
	var later []inputs
	for i, e := range entries {
		if c.full() {
			return
		}
		s, path := c.order[i], keyActions+"."+e.Key.Value
		if err := checkName(s.name); err != nil {
			c.at(keyActions)(e.Key.Line, "the name %s", err)
		}
		fields, ok := yamlfile.Mapping(yamlfile.Resolve(e.Value), "an action", c.at(path), keyUse, keyInject, keyParams, keyInputs)
		if !ok {
			continue
		}
		c.use(s, path, e.Key.Line, fields[keyUse])
		c.inject(s, sectionOf(path, keyInject, e.Key, fields))
		c.params(s, sectionOf(path, keyParams, e.Key, fields))
		later = append(later, inputs{s, sectionOf(path, keyInputs, e.Key, fields)})
	}
	// The types of outputs are known now.
	for _, l := range later {
		c.inputs(l.of, l.at)
	}
}

// section is a part of an action whose keys are slots of the Go action.
type section struct {
	path string
	n    *yaml.Node // nil when it is absent
	line int        // of messages about missing keys
}

func sectionOf(path, key string, action *yaml.Node, fields map[string]*yaml.Node) section {
	sec := section{path: path + "." + key, n: fields[key], line: action.Line}
	if sec.n != nil {
		sec.line = sec.n.Line
	}
	return sec
}

func (c *checker) use(s *step, path string, line int, n *yaml.Node) {
	name, ok := c.text(line, n, path+"."+keyUse)
	if !ok {
		return
	}
	a := c.actions.byName[name]
	if a == nil {
		c.at(path+"."+keyUse)(n.Line, "there is no Go action %q: there are %s", name, orNone(c.actions.names()))
		return
	}
	s.uses = a
	s.inputs = make([]source, len(a.inputs))
	s.params = make([]json.RawMessage, len(a.params))
	s.services = make([]reflect.Value, len(a.services))
}

// inject resolves the services that an action names.
func (c *checker) inject(s *step, sec section) {
	missing := c.eachSlot(s, sec, "service", func(a *goAction) []slot { return a.services },
		func(i int, at string, value *yaml.Node) {
			name, ok := c.text(value.Line, value, at)
			if !ok {
				return
			}
			slot := s.uses.services[i]
			service, there := c.services[name]
			switch {
			case !there:
				c.at(at)(value.Line, "there is no service %q: there are %s", name, orNone(slices.Sorted(maps.Keys(c.services))))
			case isNil(service):
				c.at(at)(value.Line, "the service %q is nil", name)
			case !reflect.TypeOf(service).AssignableTo(slot.is):
				c.at(at)(value.Line, "the service %q is %s: it must be %s", name, article.With(reflect.TypeOf(service)), article.With(slot.is))
			default:
				s.services[i], s.serviceNames[slot.name] = reflect.ValueOf(service), name
			}
		})
	for _, slot := range missing {
		c.at(sec.path+"."+slot.name)(sec.line, "is missing: name a service; those of type %s are %s", slot.is, orNone(c.servicesOf(slot.is)))
	}
}

func (c *checker) servicesOf(t reflect.Type) (names []string) {
	for name, service := range c.services {
		if !isNil(service) && reflect.TypeOf(service).AssignableTo(t) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isNil reports whether a service is nil, or a nil pointer or function, which no action
// could use.
func isNil(service any) bool {
	switch v := reflect.ValueOf(service); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	default:
		return false
	}
}

// params reads the params of an action.
func (c *checker) params(s *step, sec section) {
	before := len(c.found)
	missing := c.eachSlot(s, sec, "param", func(a *goAction) []slot { return a.params },
		func(i int, at string, value *yaml.Node) {
			literal, ok := c.literal(value, at)
			if !ok {
				return
			}
			if err := guard(func() error { return strictly(literal, reflect.New(s.uses.params[i].is).Interface()) }); err != nil {
				c.at(at)(value.Line, "%s", err)
				return
			}
			s.params[i] = literal
		})
	for _, slot := range missing {
		c.at(sec.path+"."+slot.name)(sec.line, "is missing: give it %s", article.With(slot.is))
	}
	if s.uses == nil || len(c.found) > before {
		return
	}
	if err := guard(func() error { return s.uses.checkParams(s.fillParams) }); err != nil {
		c.at(sec.path)(sec.line, "%s", err)
	}
}

// eachSlot calls each with the index, the path and the value of every slot in a section,
// and returns the slots that the section lacks.
func (c *checker) eachSlot(s *step, sec section, what string, of func(*goAction) []slot, each func(i int, at string, value *yaml.Node)) (missing []slot) {
	entries := c.entries(sec.n, sec.path, "the keys are the names of the Go action's "+what+"s")
	if s.uses == nil {
		return nil
	}
	slots := of(s.uses)
	given := map[string]bool{}
	for _, e := range entries {
		if c.full() {
			return nil
		}
		i := slices.IndexFunc(slots, func(s slot) bool { return s.name == e.Key.Value })
		given[e.Key.Value] = true
		if i < 0 {
			c.at(sec.path+"."+e.Key.Value)(e.Key.Line, "the Go action %s has no %s of this name: it has %s", s.uses.name, what, namesOf(slots))
			continue
		}
		value := *yamlfile.Resolve(e.Value)
		value.Line = e.Value.Line // of an alias: the line of the alias itself
		each(i, sec.path+"."+e.Key.Value, &value)
	}
	for _, slot := range slots {
		if !slot.optional && !given[slot.name] {
			missing = append(missing, slot)
		}
	}
	return missing
}

// entries returns those of a mapping that may be absent or empty.
func (c *checker) entries(n *yaml.Node, path, hint string) []yamlfile.Entry {
	n = yamlfile.Resolve(n)
	if n == nil || yamlfile.IsNull(n) {
		return nil
	}
	list, _ := yamlfile.Entries(n, "this", hint, c.at(path))
	return list
}

// text reads a value that has to be a text. line is for the message if it is missing.
func (c *checker) text(line int, n *yaml.Node, path string) (string, bool) {
	n = yamlfile.Resolve(n)
	switch {
	case n == nil:
		c.at(path)(line, "is missing")
	case n.Kind != yaml.ScalarNode:
		c.at(path)(n.Line, "it is %s: give it one value", yamlfile.KindOf(n))
	case n.Value == "" || yamlfile.IsNull(n):
		c.at(path)(n.Line, "it is empty: give it a value")
	case n.ShortTag() != "!!str":
		c.at(path)(n.Line, "it is %s: put it into quotes if it is meant as text", yamlfile.KindOf(n))
	default:
		return n.Value, true
	}
	return "", false
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
