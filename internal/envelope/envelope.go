// Package envelope is the form in which an encrypted value stands in a row: a JSON object with the id of its key, which
// everybody may see, and the bytes. What encrypts and opens it is package valuecodec.
package envelope

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// prefix begins each envelope, and no other value that means something else.
const prefix = `{"$encrypted":{"key":`

// Is reports whether a value is an envelope. It allocates nothing.
func Is(value []byte) bool { return bytes.HasPrefix(value, []byte(prefix)) }

// Key returns the id of the key of an envelope, and whether the value is one.
func Key(value []byte) (id uint32, is bool) {
	if !Is(value) {
		return 0, false
	}
	digits, _, _ := bytes.Cut(value[len(prefix):], []byte(","))
	n, err := strconv.ParseUint(string(digits), 10, 32)
	return uint32(n), err == nil
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
