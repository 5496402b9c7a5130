package cleanup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"eventsv2/eventqueue"
)

// NoInputs is Key.Inputs if no inputs are chosen.
const NoInputs = "none"

// Key identifies the publications that replace each other. NewKey makes one. Keys are
// comparable. Their parts are always kept apart, so that no two keys are confused.
type Key struct {
	// Canvas is the tenant. Keys of different canvases have nothing in common.
	Canvas eventqueue.CanvasID

	// Component is the part of the program that publishes and can delete, such as "slack".
	Component string

	// Topic is Config.Key.
	Topic string

	// Inputs is the SHA-256 of the chosen inputs, in hexadecimal, or NoInputs.
	Inputs string
}

// NewKey makes the key of a publication. component is at most eventqueue.MaxNameBytes
// long, without control characters. inputs are all inputs of the publication; the hash
// covers the names and values of those in config.Inputs, sorted. If one of
// them is missing, the error names it.
//
// Values are compared by their JSON (encoding/json) with sorted object fields: "1" is
// not 1, and null is not the same as an absent input. To compare something else, pass
// another value, such as the name of a user instead of the user. Values that could have
// the same hash although they differ are refused: those without JSON, and texts that are
// not UTF-8 or contain U+FFFD, which replaces invalid UTF-8.
func NewKey(canvas eventqueue.CanvasID, component string, config Config, inputs map[string]any) (Key, error) {
	if err := config.Validate(); err != nil {
		return Key{}, err
	}
	hash, err := hashInputs(config.Inputs, inputs)
	if err != nil {
		return Key{}, fmt.Errorf("cleanup %q of component %q: %w", config.Key, component, err)
	}
	key := Key{Canvas: canvas, Component: component, Topic: config.Key, Inputs: hash}
	return key, key.Validate()
}

// String returns the key as a text for logs and messages, with component and topic
// quoted. Different keys have different texts.
func (k Key) String() string {
	return fmt.Sprintf("%s/%q/%q/%s", k.Canvas, k.Component, k.Topic, k.Inputs)
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Validate returns an error that names the first part that cannot be stored. Every key
// of NewKey is valid.
func (k Key) Validate() error {
	if k.Canvas == (eventqueue.CanvasID{}) {
		return errors.New("cleanup key: canvas is missing")
	}
	if err := checkName(k.Component); err != nil {
		return fmt.Errorf("cleanup key: component %w", err)
	}
	if err := checkName(k.Topic); err != nil {
		return fmt.Errorf("cleanup key: topic %w", err)
	}
	if k.Inputs != NoInputs && !hashForm.MatchString(k.Inputs) {
		return fmt.Errorf("cleanup key: inputs are %q: use NewKey, which hashes them", k.Inputs)
	}
	return nil
}

// hashInputs hashes the named inputs. The length precedes each name and each value, so
// that different lists of inputs are always different bytes.
func hashInputs(names []string, inputs map[string]any) (string, error) {
	if len(names) == 0 {
		return NoInputs, nil
	}
	var text []byte
	for _, name := range slices.Sorted(slices.Values(names)) {
		value, ok := inputs[name]
		if !ok {
			return "", fmt.Errorf("there is no input %q: %s", name, have(inputs))
		}
		canonical, err := canonicalJSON(value)
		if err != nil {
			return "", fmt.Errorf("input %q: %w; hand another value in for it", name, err)
		}
		for _, part := range [][]byte{[]byte(name), canonical} {
			text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
			text = append(text, part...)
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func have(inputs map[string]any) string {
	if len(inputs) == 0 {
		return "there are no inputs"
	}
	return "there are " + strings.Join(slices.Sorted(maps.Keys(inputs)), ", ")
}

// canonicalJSON returns the same text for a struct, a map and a text with the same JSON.
func canonicalJSON(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var generic any
	if err := decoder.Decode(&generic); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(generic); err != nil {
		return nil, err
	}
	// The encoder has replaced invalid UTF-8 by this character.
	if bytes.ContainsRune(text, utf8.RuneError) {
		return nil, errors.New("its text is not valid UTF-8, or holds U+FFFD, which stands for such text")
	}
	return text, nil
}
