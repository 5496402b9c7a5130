package typed

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"eventsv2/internal/article"
)

// addEvent plans the struct of a typed event. It refuses types that cannot be encoded as JSON and
// decoded again.
func (p plans) addEvent(t reflect.Type) error {
	if readsItself(t) || writesItself(t) {
		return errors.New("it has a method that reads or writes JSON or text, perhaps of a field that it embeds: " +
			"events are read field by field, so give that field a name")
	}
	if m := p.add(t); m != nil {
		return fmt.Errorf("field %q %s", strings.TrimPrefix(m.path, "."), m.problem)
	}
	return nil
}

func (p plans) add(t reflect.Type) *misfit {
	if _, seen := p[t]; seen {
		return nil
	}
	p[t] = nil
	if readsItself(t) {
		return nil
	}
	if writesItself(t) {
		return &misfit{problem: fmt.Sprintf("is %s, which writes itself as JSON and cannot read itself: give it UnmarshalJSON", article.With(t))}
	}
	switch t.Kind() {
	case reflect.Struct:
		return p.addStruct(t)
	case reflect.Pointer:
		return p.add(t.Elem())
	case reflect.Slice, reflect.Array:
		return p.add(t.Elem()).under("[]")
	case reflect.Map:
		if key := t.Key(); key.Kind() != reflect.String && !isInteger(key) && !isText(key) {
			return &misfit{problem: fmt.Sprintf("is a map with keys of %s: JSON has strings only", key)}
		}
		return p.add(t.Elem()).under(".*")
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return &misfit{problem: fmt.Sprintf("is %s: what is behind an interface with methods cannot be read back", article.With(t))}
		}
		return nil
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return nil
	default:
		if isInteger(t) {
			return nil
		}
		return &misfit{problem: fmt.Sprintf("is %s, which JSON does not have", article.With(t))}
	}
}

// isText reports whether encoding/json can use a type as the keys of an object.
func isText(t reflect.Type) bool {
	return t.Implements(textWriter) && reflect.PointerTo(t).Implements(textReader)
}

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr
}

func (p plans) addStruct(t reflect.Type) *misfit {
	fields, m := fieldsOf(t)
	if m != nil {
		return m
	}
	p[t] = fields
	for _, f := range fields {
		if m := p.add(f.is); m != nil {
			return m.under("." + f.name)
		}
	}
	return nil
}

// fieldsOf lists the fields of a struct as encoding/json sees them: fields of embedded structs
// belong to it, unless a field at a lesser depth has the same name.
func fieldsOf(t reflect.Type) (fields []field, m *misfit) {
	type embedded struct {
		is    reflect.Type
		index []int
	}
	depth := map[string]int{}
	for level, next := 0, []embedded{{is: t}}; len(next) > 0; level++ {
		structs := next
		next = nil
		for _, s := range structs {
			for sf := range s.is.Fields() {
				tag := sf.Tag.Get("json")
				name, options, _ := strings.Cut(tag, ",")
				index := append(append([]int(nil), s.index...), sf.Index...)
				kind := sf.Type.Kind()
				inlined := sf.Anonymous && name == "" && behind(sf.Type).Kind() == reflect.Struct
				switch {
				case tag == "-", !sf.IsExported() && !inlined && (!sf.Anonymous || kind != reflect.Struct):
					continue
				case refusal(sf, name, inlined) != "":
					return nil, &misfit{"." + sf.Name, refusal(sf, name, inlined)}
				case inlined:
					next = append(next, embedded{sf.Type, index})
					continue
				case name == "":
					name = sf.Name
				}
				if d, taken := depth[name]; taken && d < level {
					continue
				} else if taken {
					return nil, &misfit{"." + name, fmt.Sprintf("is there twice in %s", t)}
				}
				depth[name] = level
				fields = append(fields, field{name: name, index: index, is: sf.Type,
					required: kind != reflect.Pointer && !has(options, "omitempty") && !has(options, "omitzero"),
					quoted:   has(options, "string") && isQuotable(sf.Type)})
			}
		}
	}
	return fields, nil
}

// refusal returns why a field of a struct cannot be encoded and decoded again, whatever its type. It
// is empty if it can.
func refusal(sf reflect.StructField, name string, inlined bool) string {
	switch {
	case inlined && sf.Type.Kind() == reflect.Pointer:
		return "is an embedded pointer, whose fields are missing when it is nil: embed the struct itself"
	case !inlined && !sf.IsExported() && (readsItself(sf.Type) || writesItself(sf.Type)):
		return "is embedded and not exported, so that its own methods cannot write and read it: give it a name"
	case strings.ContainsFunc(name, isNoName):
		return fmt.Sprintf("has the name %q in its tag, which encoding/json ignores: use letters, digits, _ and -", name)
	default:
		return ""
	}
}

// isNoName reports whether encoding/json refuses names with this character.
func isNoName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
}

func has(options, option string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == option {
			return true
		}
	}
	return false
}

// behind returns the element type of a pointer, and any other type itself.
func behind(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// isQuotable reports whether the option string of a tag has an effect.
func isQuotable(t reflect.Type) bool {
	t = behind(t)
	if writesItself(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	default:
		return isInteger(t)
	}
}

// lack returns which field of the struct t is missing in, or differs from, the JSON of the struct
// other, whose plans are others; if it is strict, also which one may be missing. It is empty if there
// is none. It compares types by their JSON types, and nested structs by their fields.
func (p plans) lack(t reflect.Type, others plans, other reflect.Type, strict bool) string {
	if t == other {
		return ""
	}
	written := map[string]field{}
	for _, f := range others[other] {
		written[f.name] = f
	}
	for _, f := range p[t] {
		w, ok := written[f.name]
		if f.required && !ok {
			return strconv.Quote(f.name)
		}
		if f.required && !w.required && strict {
			return strconv.Quote(f.name) + " that is always written"
		}
		if !ok {
			continue
		}
		if is, was := f.inJSON(), w.inJSON(); is != was && is != "" && was != "" {
			return fmt.Sprintf("%q that is %s (there it is %s)", f.name, is, was)
		}
		if p[f.is] == nil || others[w.is] == nil {
			continue
		}
		if within := p.lack(f.is, others, w.is, strict); within != "" {
			return `"` + f.name + "." + within[1:]
		}
	}
	return ""
}

// inJSON returns the JSON type of a field; empty if it may be any.
func (f field) inJSON() string {
	switch t := behind(f.is); {
	case t.Kind() == reflect.Interface, readsItself(t):
		return ""
	case f.quoted, t.Kind() == reflect.String, isBytes(t):
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case isList(t):
		return "an array"
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "an object"
	case isInteger(t), t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return "a number"
	default:
		return "" // a pointer to a pointer
	}
}
