package eventstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/internal/priority"
)

// pattern is an event of which the fields that are set are compared.
type pattern eventqueue.NewEvent

func (v View) pattern(method string, event any) pattern {
	t := v.queue.t
	t.Helper()
	p := pattern(v.queue.newEvent(method, event))
	if err := p.check(); err != nil {
		t.Fatalf("eventstest: %s: %v", method, err)
	}
	return p
}

// check returns what cannot be compared.
func (p pattern) check() error {
	switch {
	case p.UniqueMode != "" || p.UniqueFor != 0 || p.MaxWait != 0:
		return errors.New("UniqueMode, UniqueFor and MaxWait cannot be compared: leave them out")
	case len(p.fields()) == 0:
		return errors.New("the event has no field that is set, so any event is like it: set its Name")
	case len(p.Value) > 0 && !json.Valid(p.Value):
		return fmt.Errorf("Value %s is not valid JSON", shortened(string(p.Value)))
	default:
		return nil
	}
}

// field is one that is set.
type field struct {
	name, text string
	weight     int                          // for how near an event is
	differs    func(e *Emitted) (is string) // empty: it does not
}

// fields are those that are set.
func (p pattern) fields() (fields []field) {
	text := func(name, want string, weight int, is func(*Emitted) string) {
		if want == "" {
			return
		}
		fields = append(fields, field{name, strconv.Quote(want), weight, func(e *Emitted) string {
			if got := is(e); got != want {
				return "is " + strconv.Quote(got)
			}
			return ""
		}})
	}
	text("Name", p.Name, 4, func(e *Emitted) string { return e.Name })
	text("Module", p.Module, 4, func(e *Emitted) string { return e.Module })
	text("Modifier", p.Modifier, 2, func(e *Emitted) string { return e.Modifier })
	if p.Canvas != (eventqueue.CanvasID{}) {
		text("Canvas", p.Canvas.String(), 1, func(e *Emitted) string { return e.Canvas.String() })
	}
	if len(p.Value) > 0 {
		fields = append(fields, field{"Value", shortened(string(p.Value)), 1, func(e *Emitted) string { return differentJSON(e.Value, p.Value) }})
	}
	text("OrderingKey", p.OrderingKey, 1, func(e *Emitted) string { return e.OrderingKey })
	text("UniqueKey", p.UniqueKey, 1, func(e *Emitted) string { return e.UniqueKey })
	if p.ParentID != 0 {
		text("ParentID", p.ParentID.String(), 1, func(e *Emitted) string { return e.ParentID.String() })
	}
	for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
		text("attribute "+name, p.Attributes[name], 1, func(e *Emitted) string { return e.Attributes[name] })
	}
	return append(fields, p.untilEnd()...)
}

// untilEnd are the fields that are known until the event has ended.
func (p pattern) untilEnd() (fields []field) {
	differs := func(is, want func(*Emitted) string) func(*Emitted) string {
		return func(e *Emitted) string {
			switch {
			case e.Ended:
				return "is not known any more: the event has ended"
			case is(e) != want(e):
				return "is " + is(e)
			default:
				return ""
			}
		}
	}
	if p.Priority != "" {
		fields = append(fields, field{"Priority", strconv.Quote(p.Priority), 1, differs(
			func(e *Emitted) string { return strconv.Quote(cmp.Or(e.Priority, priority.Normal)) }, func(*Emitted) string { return strconv.Quote(p.Priority) })})
	}
	if p.Delay != 0 {
		fields = append(fields, field{"Delay", p.Delay.String(), 1, differs(
			func(e *Emitted) string { return e.Delay.String() }, func(*Emitted) string { return p.Delay.String() })})
	}
	if !p.DelayUntil.IsZero() {
		until := p.DelayUntil.UTC().Truncate(1000).String()
		fields = append(fields, field{"DelayUntil", until, 1, differs(
			func(e *Emitted) string { return e.DelayUntil.UTC().String() }, func(*Emitted) string { return until })})
	}
	return fields
}

// String shows the fields that are set.
func (p pattern) String() string {
	var parts []string
	for _, f := range p.fields() {
		parts = append(parts, f.name+" "+f.text)
	}
	return strings.Join(parts, ", ")
}

// differences says how an event differs.
func (p pattern) differences(e *Emitted) (differences []string) {
	for _, f := range p.fields() {
		if is := f.differs(e); is != "" {
			differences = append(differences, f.name+" "+is+", want "+f.text)
		}
	}
	return differences
}

// near is how much of the pattern an event has.
func (p pattern) near(e *Emitted) (near int) {
	for _, f := range p.fields() {
		if f.differs(e) == "" {
			near += f.weight
		}
	}
	return near
}

// instead says what was emitted in place of the pattern, and how the nearest event differs.
func (p pattern) instead(all []Emitted, committed bool) string {
	if len(all) == 0 {
		if committed {
			return "\tnothing was emitted and committed; for a transaction that has not ended, use In"
		}
		return "\tnothing was emitted"
	}
	nearest := all[len(all)-1]
	for i := len(all) - 1; i >= 0; i-- {
		if p.near(&all[i]) > p.near(&nearest) {
			nearest = all[i]
		}
	}
	lines := []string{fmt.Sprintf("\tthe nearest is event %s: %s", nearest.ID, strings.Join(p.differences(&nearest), "; ")), "\temitted were:"}
	for _, e := range all[max(0, len(all)-mostShown):] {
		lines = append(lines, "\t\t"+e.String())
	}
	if len(all) > mostShown {
		lines = append(lines, fmt.Sprintf("\t\tand %d before these", len(all)-mostShown))
	}
	return strings.Join(lines, "\n")
}

// differentJSON says where two values differ as JSON; empty: nowhere. want is valid.
func differentJSON(got, want json.RawMessage) string {
	has, err := decoded(got)
	if err != nil {
		return "is " + shortened(string(got))
	}
	should, _ := decoded(want)
	path, is, differs := difference("", has, should)
	switch {
	case !differs:
		return ""
	case path == "":
		return "is " + shownJSON(is)
	default:
		return "has " + shownJSON(is) + " at " + path
	}
}

// decoded keeps numbers as they are written: as floats, long ids would be rounded.
func decoded(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// absent stands for what an object or an array does not have.
type absent struct{}

func shownJSON(v any) string {
	if v == (absent{}) {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shortened(string(text))
}

// difference returns the first place where two decoded values differ.
func difference(path string, is, should any) (at string, got any, differs bool) {
	switch should := should.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			keys := maps.Clone(is)
			maps.Copy(keys, should)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				if at, got, differs := difference(path+"."+key, member(is, key), member(should, key)); differs {
					return at, got, true
				}
			}
			return "", nil, false
		}
	case []any:
		if is, ok := is.([]any); ok {
			for i := range max(len(is), len(should)) {
				if at, got, differs := difference(fmt.Sprintf("%s[%d]", path, i), element(is, i), element(should, i)); differs {
					return at, got, true
				}
			}
			return "", nil, false
		}
	}
	return path, is, !reflect.DeepEqual(is, should)
}

func member(of map[string]any, key string) any {
	if v, ok := of[key]; ok {
		return v
	}
	return absent{}
}

func element(of []any, i int) any {
	if i < len(of) {
		return of[i]
	}
	return absent{}
}

// mostBytes is how much of a value or an error a failure shows.
const mostBytes = 300

func shortened(text string) string {
	if len(text) <= mostBytes {
		return text
	}
	return strings.ToValidUTF8(text[:mostBytes], "") + fmt.Sprintf("… (%d bytes)", len(text))
}
