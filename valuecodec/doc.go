// Package valuecodec encrypts the values of events, so that only the application can read them: when they are emitted, and
// until a handler gets them. Database, history, backups, logs, eventctl, HTTP API and dashboard have no more than the
// id of the key.
//
//	codec, err := valuecodec.Load("/secrets/values.json") // or New, with a key set that a KMS has opened
//	s, err := service.Open(ctx, service.Config{DatabaseURL: url, Codec: codec})
//
// # What is promised
//
// A value is encrypted and authenticated (AEAD of Tink), and bound to its canvas, module, name and modifier: whoever can
// write to the database cannot read it, make another one, or hand it to another handler. They can delete it, repeat it for the
// same handler, or write one in the clear in its place. Its length shows. Everything else of an event is in the clear: its
// names, attributes, ordering and unique keys, and errors.
//
// Values in the clear are handed over as they are, so that a codec can be turned on while events wait. A handler knows them by
// Encrypted of its event.
//
// # Failures
//
// A key set that cannot be used is an error of New and Load. A run whose value cannot be opened is a failed attempt with
// an error that names the key, and its handler is not called: it is tried again, and then FAILED, with its value.
package valuecodec
