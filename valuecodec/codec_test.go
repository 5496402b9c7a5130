package valuecodec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"

	"eventsv2/eventqueue"
	"eventsv2/internal/envelope"
	"eventsv2/valuecodec"
)

const canary = "canary-in-a-cage"

// keys is a key set to which a test adds keys.
type keys struct {
	t *testing.T
	*keyset.Manager
}

func newKeys(t *testing.T) (k keys, first uint32) {
	t.Helper()
	k = keys{t, keyset.NewManager()}
	first = k.add()
	k.do(k.SetPrimary(first))
	return k, first
}

func (k keys) do(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k keys) add() uint32 {
	k.t.Helper()
	id, err := k.Add(aead.AES256GCMKeyTemplate())
	k.do(err)
	return id
}

func (k keys) handle() *keyset.Handle {
	k.t.Helper()
	h, err := k.Handle()
	k.do(err)
	return h
}

func (k keys) codec() *valuecodec.Codec {
	k.t.Helper()
	c, err := valuecodec.New(k.handle())
	k.do(err)
	return c
}

func event(value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Name: "mail", Modifier: "_", Value: json.RawMessage(value), Attributes: map[string]string{}}
}

// seal is what a codec has a queue insert.
func seal(t *testing.T, c *valuecodec.Codec, events ...eventqueue.NewEvent) (passed []eventqueue.Event) {
	t.Helper()
	_, err := c.Emit(t.Context(), slices.Clone(events), func(_ context.Context, events []eventqueue.NewEvent) ([]eventqueue.Emitted, error) {
		for _, e := range events {
			passed = append(passed, eventqueue.Event{Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier, Value: e.Value})
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return passed
}

func TestValueIsOpenedAsItWasEmittedAndNowhereElse(t *testing.T) {
	t.Parallel()
	set, id := newKeys(t)
	c := set.codec()
	values := []string{`{"a": "` + canary + `"}`, `null`, ` [1,2] `}
	sealed := seal(t, c, event(values[0]), event(values[1]), event(values[2]))
	for i, e := range sealed {
		key, is := envelope.Key(e.Value)
		if !is || key != id || !json.Valid(e.Value) || bytes.Contains(e.Value, []byte(canary)) {
			t.Errorf("stored is %s", e.Value)
		}
		if opened, err := c.Open(&e); err != nil || string(opened) != values[i] {
			t.Errorf("opened is %s, %v, want %s", opened, err, values[i])
		}
	}
	again := seal(t, c, event(string(sealed[0].Value)))
	if !bytes.Equal(again[0].Value, sealed[0].Value) {
		t.Errorf("a value that is encrypted becomes %s", again[0].Value)
	}
	elsewhere := event(string(sealed[0].Value))
	elsewhere.Name = "dead"
	var invalid *eventqueue.InvalidError
	if _, err := c.Emit(t.Context(), []eventqueue.NewEvent{event(`1`), elsewhere}, nil); !errors.As(err, &invalid) || invalid.Index != 1 || invalid.Field != "value" {
		t.Errorf("a value that no run could open is emitted: %v", err)
	}
	for _, move := range []func(e *eventqueue.Event){
		func(e *eventqueue.Event) { e.Canvas[0] = 2 },
		func(e *eventqueue.Event) { e.Module = "OTHER" },
		func(e *eventqueue.Event) { e.Name = "post" },
		func(e *eventqueue.Event) { e.Modifier = "other" },
		func(e *eventqueue.Event) { e.Value = envelope.Make(id, []byte("no bytes of it")) },
		func(e *eventqueue.Event) { e.Value = append(slices.Clone(e.Value), 'x') },
	} {
		e := sealed[0]
		move(&e)
		if opened, err := c.Open(&e); err == nil || opened != nil || !strings.Contains(err.Error(), strconv.Itoa(int(id))) {
			t.Errorf("moved or changed, it is opened as %s, %v", opened, err)
		}
	}
	plain := eventqueue.Event{Value: json.RawMessage(`"plain"`)}
	if opened, err := c.Open(&plain); err != nil || string(opened) != `"plain"` {
		t.Errorf("a value in the clear is %s, %v", opened, err)
	}
}

func TestOldKeysOpenAfterARotation(t *testing.T) {
	t.Parallel()
	set, first := newKeys(t)
	before := set.codec()
	old := seal(t, before, event(`"old"`))[0]
	second := set.add()
	announced := set.codec()
	set.do(set.SetPrimary(second))
	rotated := set.codec()
	fresh := seal(t, rotated, event(`"new"`))[0]
	if key, _ := envelope.Key(fresh.Value); key != second {
		t.Errorf("it was encrypted with %d, want the new primary key %d", key, second)
	}
	for _, c := range []*valuecodec.Codec{announced, rotated} {
		for _, e := range []eventqueue.Event{old, fresh} {
			if _, err := c.Open(&e); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := before.Open(&fresh); err == nil || !strings.Contains(err.Error(), strconv.Itoa(int(second))+", which is not in the key set") || !strings.Contains(err.Error(), "it has "+strconv.Itoa(int(first))) {
		t.Errorf("without the new key: %v", err)
	}
	set.do(set.Disable(first))
	if _, err := set.codec().Open(&old); err == nil || !strings.Contains(err.Error(), "or is disabled") {
		t.Errorf("with a disabled key: %v", err)
	}
}

// TestInvalidEventsAreRefusedAsWithoutACodec: what is encrypted cannot be checked later.
func TestInvalidEventsAreRefusedAsWithoutACodec(t *testing.T) {
	t.Parallel()
	set, _ := newKeys(t)
	for _, value := range []string{``, `{`, `"\u0000"`, "\"\xff\""} {
		called := false
		_, err := set.codec().Emit(t.Context(), []eventqueue.NewEvent{event(`1`), event(value)}, func(context.Context, []eventqueue.NewEvent) ([]eventqueue.Emitted, error) {
			called = true
			return nil, nil
		})
		if invalid, is := errors.AsType[*eventqueue.InvalidError](err); !is || invalid.Index != 1 || invalid.Field != "value" || called {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestLoadRefusesFilesWithoutAUsableKeySet(t *testing.T) {
	t.Parallel()
	set, id := newKeys(t)
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clear := func(h *keyset.Handle) []byte {
		var b bytes.Buffer
		set.do(insecurecleartextkeyset.Write(h, keyset.NewJSONWriter(&b)))
		return b.Bytes()
	}
	c, err := valuecodec.Load(file("good", clear(set.handle())))
	if err != nil {
		t.Fatal(err)
	}
	if key, _ := envelope.Key(seal(t, c, event(`1`))[0].Value); key != id {
		t.Errorf("the file's key is %d, want %d", key, id)
	}

	macs, err := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	set.do(err)
	kms, err := aead.New(set.handle())
	set.do(err)
	var wrapped bytes.Buffer
	set.do(set.handle().Write(keyset.NewJSONWriter(&wrapped), kms))
	opened, err := keyset.Read(keyset.NewJSONReader(&wrapped), kms) // as docs/encryption.md has it
	set.do(err)
	if _, err := valuecodec.New(opened); err != nil {
		t.Error(err)
	}
	set.do(set.handle().Write(keyset.NewJSONWriter(&wrapped), kms))
	for name, want := range map[string]string{
		filepath.Join(dir, "missing"):                 "no such file",
		file("empty", nil):                            "no key set of Tink in JSON",
		file("broken", []byte(`{"`+canary)):           "no key set of Tink in JSON",
		file("none", []byte(`{"key":[]}`)):            "no key set of Tink in JSON",
		file("mac", clear(macs)):                      "is not one of AEAD keys",
		file("wrapped", bytes.Clone(wrapped.Bytes())): "valuecodec.New",
	} {
		_, err := valuecodec.Load(name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := valuecodec.New(nil); err == nil {
		t.Error("a nil key set is accepted")
	}
}
