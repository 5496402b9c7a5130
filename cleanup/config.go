package cleanup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"eventsv2/eventqueue"
	"eventsv2/internal/exactjson"
)

// Config configures which publications a new publication replaces, and when. It is part
// of a handler's own configuration, and can be read from JSON and YAML:
//
//	cleanup:
//	  key: my_publication
//	  ttl: 3d12h
//	  inputs: [target, channel]
//
// Reading refuses values that Validate refuses. It also refuses unknown fields, and a
// second ttl, however it is spelled, because with a wrong ttl publications would be
// deleted at once.
type Config struct {
	// Key is the topic. A publication is cleaned up by later publications of the same
	// canvas, component, topic and inputs. Required; at most eventqueue.MaxNameBytes
	// long, without control characters.
	Key string `json:"key" yaml:"key"`

	// TTL is how long the publication stays at the least. Default (0): Replace.
	TTL TTL `json:"ttl" yaml:"ttl"`

	// Inputs are the names of the inputs whose values belong to the key, such as the
	// channel. Their order does not matter. Default: none.
	Inputs []string `json:"inputs,omitempty" yaml:"inputs,omitempty"`
}

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	if err := checkName(c.Key); err != nil {
		return fmt.Errorf("cleanup: key %w", err)
	}
	if err := c.TTL.Validate(); err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	for i, name := range c.Inputs {
		if name == "" {
			return errors.New("cleanup: inputs holds an empty name: leave it out")
		}
		if slices.Contains(c.Inputs[:i], name) {
			return fmt.Errorf("cleanup: inputs holds %q twice: remove one of the two, or name the input that was meant", name)
		}
	}
	return nil
}

// plain is a Config without its methods, for decoding.
type plain Config

// UnmarshalJSON reads a Config, and refuses one that is not valid.
func (c *Config) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	var read plain
	if err := exactjson.UnmarshalStrict(text, &read); err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	return c.set(read)
}

// UnmarshalYAML reads a Config, and refuses one that is not valid. YAML libraries call
// this method; the package itself depends on none of them.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	var fields map[string]any
	if err := unmarshal(&fields); err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains([]string{"key", "ttl", "inputs"}, name) {
			return fmt.Errorf("cleanup: unknown field %q: there are key, ttl and inputs", name)
		}
		if name == "ttl" && fields[name] == nil { // which reads as Replace
			return fmt.Errorf("cleanup: ttl is empty: %w", errTTLHelp)
		}
	}
	var read plain
	if err := unmarshal(&read); err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	return c.set(read)
}

func (c *Config) set(read plain) error {
	if err := Config(read).Validate(); err != nil {
		return err
	}
	*c = Config(read)
	return nil
}

// checkName refuses names that do not fit into a text column or a line of a log.
func checkName(s string) error {
	switch {
	case s == "":
		return errors.New("is missing")
	case len(s) > eventqueue.MaxNameBytes:
		return fmt.Errorf("is %d bytes long: the limit is %d", len(s), eventqueue.MaxNameBytes)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is not valid UTF-8", s)
	case strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("%q holds a control character", s)
	default:
		return nil
	}
}
