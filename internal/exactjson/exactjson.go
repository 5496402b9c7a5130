// Package exactjson reads JSON as encoding/json does, but for the names of fields: they are case-sensitive, as in
// typed events. encoding/json gives "TTL" to the field ttl, so that a second spelling takes the place of the first.
package exactjson

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// UnmarshalTypeError is the error of a value that does not fit its Go type.
type UnmarshalTypeError = jsonv1.UnmarshalTypeError

var exact = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.MatchCaseInsensitiveNames(false))

// Unmarshal ignores members that are no fields.
func Unmarshal(text []byte, target any) error { return json.Unmarshal(text, target, exact) }

// UnmarshalStrict refuses members that are no fields, and those that are there twice.
func UnmarshalStrict(text []byte, target any) error {
	return json.Unmarshal(text, target, exact, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false))
}
