package valuecodec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"eventsv2/eventqueue"
	"eventsv2/internal/envelope"
)

// Codec encrypts values with the primary key of a key set and opens them with any of its keys. It is safe for concurrent use.
type Codec struct {
	aead    tink.AEAD
	primary uint32
	keys    []uint32 // that are enabled
}

// New returns a Codec of a key set of AEAD keys, such as of the template AES256_GCM. The error says what is wrong with the set.
func New(keys *keyset.Handle) (*Codec, error) {
	if keys == nil {
		return nil, errors.New("the key set is nil")
	}
	primary, err := keys.Primary()
	if err != nil {
		return nil, fmt.Errorf("the key set has no primary key: %w", err)
	}
	c := &Codec{primary: primary.KeyID()}
	if c.aead, err = aead.New(keys); err != nil {
		return nil, fmt.Errorf("the key set is not one of AEAD keys, such as AES256_GCM: %w", err)
	}
	for i := range keys.Len() {
		key, err := keys.Entry(i)
		if err != nil {
			return nil, fmt.Errorf("read the key set: %w", err)
		}
		if key.KeyStatus() == keyset.Enabled {
			c.keys = append(c.keys, key.KeyID())
		}
	}
	return c, nil
}

// Load is New for a file with a key set of Tink in JSON that is not encrypted, such as a mounted secret. The error names the
// file and has none of its content.
func Load(file string) (*Codec, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the key set: %w", err)
	}
	defer func() { _ = text.Close() }() // it was only read
	keys, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(text))
	if err != nil {
		// The library's own error may be an excerpt.
		return nil, fmt.Errorf("%s has no key set of Tink in JSON that is not encrypted: make one as docs/encryption.md says; a key set that a KMS has encrypted is for a program of your own, "+
			"which gives the opened one to valuecodec.New", file)
	}
	c, err := New(keys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Emit is an eventqueue.EmitMiddleware that encrypts the values of the events. It is the last of several. A value that is
// encrypted already stays as it is, if the codec opens it at this event. Values that could not be emitted are refused as
// always, with an *eventqueue.InvalidError.
func (c *Codec) Emit(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
	// What is emitted later is the envelope, whose length is what counts.
	if err := (eventqueue.Limits{MaxValueBytes: math.MaxInt, MaxDelay: mostDelay}).CheckEvents(events, time.Now()); err != nil {
		return nil, err
	}
	for i := range events {
		e := &events[i]
		if envelope.Is(e.Value) {
			if _, err := c.Open(&eventqueue.Event{Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: e.Value}); err != nil {
				return nil, &eventqueue.InvalidError{Index: i, Field: "value", Problem: err.Error()}
			}
			continue
		}
		sealed, err := c.seal(e.Value, addressOf(e.Canvas, e.Module, e.Name, e.Modifier))
		if err != nil {
			return nil, fmt.Errorf("encrypt the value of event %d: %w", i, err)
		}
		e.Value = sealed
	}
	return next(ctx, events)
}

// mostDelay is the longest that the limits of a queue may allow.
const mostDelay = 100 * 366 * 24 * time.Hour

// SealResult returns the result of an event encrypted, bound to the event itself. It is for worker.Config.SealResult.
func (c *Codec) SealResult(e *eventqueue.Event, result json.RawMessage) (json.RawMessage, error) {
	return c.seal(result, resultOf(e))
}

// seal encrypts a text with the primary key and binds it to an address.
func (c *Codec) seal(text, address []byte) (json.RawMessage, error) {
	encrypted, err := c.aead.Encrypt(text, address)
	if err != nil {
		return nil, fmt.Errorf("key %d: %w", c.primary, err)
	}
	return envelope.Make(c.primary, encrypted), nil
}

// Open returns the value of an event in the clear: one that is not encrypted as it is. It is for worker.Config.OpenValue,
// and for programs that read events. The error names the key, and has nothing of the value.
func (c *Codec) Open(e *eventqueue.Event) (json.RawMessage, error) {
	return c.open("value", e.Value, addressOf(e.Canvas, e.Module, e.Name, e.Modifier))
}

// OpenResult is Open for the result of an event.
func (c *Codec) OpenResult(e *eventqueue.Event, result json.RawMessage) (json.RawMessage, error) {
	return c.open("result", result, resultOf(e))
}

func (c *Codec) open(what string, sealed, address []byte) (json.RawMessage, error) {
	key, is := envelope.Key(sealed)
	if !is {
		return sealed, nil
	}
	if !slices.Contains(c.keys, key) {
		return nil, fmt.Errorf("the %s is encrypted with key %d, which is not in the key set of this program or is disabled: it has %s; give the program a key set with this key, and try again",
			what, key, listed(c.keys))
	}
	encrypted, err := envelope.Bytes(sealed)
	if err != nil {
		return nil, fmt.Errorf("the %s is encrypted with key %d, but was changed since: it is no envelope any more", what, key)
	}
	text, err := c.aead.Decrypt(encrypted, address)
	if err != nil {
		return nil, fmt.Errorf("key %d does not open the %s: it was changed since, or encrypted for another handler, canvas or event", key, what)
	}
	return text, nil
}

// addressOf is what a value is bound to: it cannot be opened at another one. Names have no control characters.
func addressOf(canvas eventqueue.CanvasID, module, name, modifier string) []byte {
	return slices.Concat(canvas[:], []byte(module), []byte{0}, []byte(name), []byte{0}, []byte(modifier))
}

// resultOf is what a result is bound to. Neither is a value one, nor the other way round.
func resultOf(e *eventqueue.Event) []byte {
	return append(addressOf(e.Canvas, e.Module, e.Name, e.Modifier), "\x00result\x00"+e.ID.String()...)
}

func listed(keys []uint32) string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = fmt.Sprint(key)
	}
	return strings.Join(texts, ", ")
}
