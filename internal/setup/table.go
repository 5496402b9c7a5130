package setup

import (
	"reflect"
	"strings"
)

// variable is the environment variable of a field of Config.
func variable(field string) string {
	if f, ok := reflect.TypeFor[Config]().FieldByName(field); ok {
		return f.Tag.Get("env")
	}
	return field
}

// Table renders the configuration as a table in Markdown, from the tags of
// Config.
func Table() string {
	var b strings.Builder
	b.WriteString("| variable | default | used by | meaning |\n|---|---|---|---|\n")
	for f := range reflect.TypeFor[Config]().Fields() {
		value := f.Tag.Get("envDefault")
		if value != "" {
			value = "`" + value + "`"
		}
		b.WriteString("| `" + f.Tag.Get("env") + "` | " + value + " | " + f.Tag.Get("used") + " | " + f.Tag.Get("desc") + " |\n")
	}
	return b.String()
}
