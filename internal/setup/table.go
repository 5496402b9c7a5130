package setup

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// variable is the environment variable of a field of a struct.
func variable(of reflect.Type, field string) string {
	if f, ok := of.FieldByName(field); ok {
		return f.Tag.Get("env")
	}
	return field
}

// Table renders the configuration as a table in Markdown, from the tags of Config and of
// what the notifiers have of their own.
func Table() string {
	var b strings.Builder
	b.WriteString("| variable | default | used by | meaning |\n|---|---|---|---|\n")
	writeRows(&b, reflect.TypeFor[Config]())
	for _, name := range slices.Sorted(maps.Keys(notifiers)) {
		if fresh := notifiers[name].New; fresh != nil {
			writeRows(&b, reflect.TypeOf(fresh()).Elem())
		}
	}
	return b.String()
}

// writeRows writes the rows of the fields of a struct.
func writeRows(b *strings.Builder, of reflect.Type) {
	for f := range of.Fields() {
		name, value, meaning := f.Tag.Get("env"), f.Tag.Get("envDefault"), f.Tag.Get("desc")
		if name == "-" {
			continue
		}
		if value != "" {
			value = "`" + value + "`"
		}
		if name == "NOTIFIER" {
			meaning += notifierMeanings()
		}
		b.WriteString("| `" + name + "` | " + value + " | " + f.Tag.Get("used") + " | " + meaning + " |\n")
	}
}

// notifierMeanings are the sentences about the notifiers that the tag of NOTIFIER leaves out.
func notifierMeanings() (text string) {
	for _, name := range slices.Sorted(maps.Keys(notifiers)) {
		if meaning := notifiers[name].Meaning; meaning != "" {
			text += " " + meaning
		}
	}
	return text
}
