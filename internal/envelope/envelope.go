// Package envelope is the form in which an encrypted value stands in a row: a JSON object with the id of its key, which
// everybody may see, and the bytes. What encrypts and opens it is package valuecodec.
package envelope

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// An envelope begins with these, and the id of its key in between. No other value does that means something else.
const (
	prefix = `{"$encrypted":{"key":`
	middle = `,"bytes":"`
)

// Is reports whether a value is an envelope. It allocates nothing.
func Is(value []byte) bool {
	_, is := Key(value)
	return is
}

// Key returns the id of the key of an envelope, which is not 0, and whether the value is one.
func Key(value []byte) (id uint32, is bool) {
	rest, is := bytes.CutPrefix(value, []byte(prefix))
	if !is {
		return 0, false
	}
	digits, _, is := bytes.Cut(rest[:min(len(rest), 20)], []byte(middle))
	n, err := strconv.ParseUint(string(digits), 10, 32)
	if !is || err != nil || n == 0 {
		return 0, false
	}
	return uint32(n), true
}

type sealed struct {
	Encrypted struct {
		Key   uint32 `json:"key"`
		Bytes []byte `json:"bytes"`
	} `json:"$encrypted"`
}

// Make returns the envelope of what a key has encrypted.
func Make(key uint32, encrypted []byte) json.RawMessage {
	var s sealed
	s.Encrypted.Key, s.Encrypted.Bytes = key, encrypted
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a number and bytes have none
	}
	return text
}

// Bytes returns what Make has put into an envelope.
func Bytes(value []byte) ([]byte, error) {
	var s sealed
	err := json.Unmarshal(value, &s)
	return s.Encrypted.Bytes, err
}
