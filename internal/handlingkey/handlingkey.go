// Package handlingkey has the rules of handling keys such as RECORD.CREATE, which name events that have several handlers: typed
// events, and those of a handlers file. A handler of RECORD also gets RECORD.CREATE.
//
// An event RECORD.CREATE is one row for module RECORD, name CREATE, modifier _. For its handler mail it becomes one for module
// RECORD, name mail, modifier RECORD.CREATE.
package handlingkey

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// None fills the parts of the key of a handler that a handling key does not use. No part of a handling key and no name of a
// handler may be equal to it.
const None = "_"

// maxBytes is the length of the longest key, which has to fit into a modifier.
const maxBytes = 255

// Check refuses what is no handling key: parts with dots between them, of 255 bytes in all.
func Check(key string) error {
	if len(key) > maxBytes {
		return fmt.Errorf("%q is %d bytes long: the limit is %d", key, len(key), maxBytes)
	}
	for part := range strings.SplitSeq(key, ".") {
		if err := CheckPart(part); err != nil {
			return fmt.Errorf("%q: a part %w", key, err)
		}
	}
	return nil
}

// CheckPart refuses what cannot be a part of a handling key or the name of a handler. The text of the error goes on for its subject.
func CheckPart(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case s == None:
		return fmt.Errorf("is %q, which is reserved", None)
	case strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}):
		return fmt.Errorf("is %q: it may have letters, digits, _ and -", s)
	case len(s) > maxBytes:
		return fmt.Errorf("is %d bytes long: the limit is %d", len(s), maxBytes)
	default:
		return nil
	}
}

// Chain lists the keys whose handlers get an event: its parents, the farthest first, and then its own key.
func Chain(key string) (chain []string) {
	for i, r := range key {
		if r == '.' {
			chain = append(chain, key[:i])
		}
	}
	return append(chain, key)
}

// Split returns the module and the name of the events of a key, whose modifier is None: the first part is the module, and the rest
// is the name.
func Split(key string) (module, name string) {
	module, name, deeper := strings.Cut(key, ".")
	if !deeper {
		name = None
	}
	return module, name
}
