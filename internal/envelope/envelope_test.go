package envelope_test

import (
	"testing"

	"eventsv2/internal/envelope"
)

func TestEnvelopeNamesItsKeyAndHoldsItsBytes(t *testing.T) {
	t.Parallel()
	value := envelope.Make(4294967295, []byte("bytes"))
	if id, is := envelope.Key(value); !is || id != 4294967295 || string(value) != `{"$encrypted":{"key":4294967295,"bytes":"Ynl0ZXM="}}` {
		t.Errorf("%s has the key %d, %t", value, id, is)
	}
	if bytes, err := envelope.Bytes(value); err != nil || string(bytes) != "bytes" {
		t.Errorf("it holds %q, %v", bytes, err)
	}
	for _, value := range []string{``, `null`, `{"encrypted":{"key":1}}`, `{"$encrypted":1}`, `{"$encrypted":{"key":x,"bytes":""}}`, `{"$encrypted":{"key":4294967296,"bytes":""}}`,
		`{"$encrypted":{"key":5}}`, `{"$encrypted":{"key":0,"bytes":""}}`, `{"$encrypted":{"key":-1,"bytes":""}}`, `{"$encrypted":{"key":1`} {
		if id, is := envelope.Key([]byte(value)); is || envelope.Is([]byte(value)) {
			t.Errorf("%s has the key %d", value, id)
		}
	}
}

// TestCheckForAnEnvelopeAllocatesNothing is not parallel, as the count of allocations is that of the process.
func TestCheckForAnEnvelopeAllocatesNothing(t *testing.T) {
	values := [][]byte{[]byte(`{"to": "ada"}`), envelope.Make(1, []byte("bytes"))}
	if n := testing.AllocsPerRun(100, func() {
		for _, value := range values {
			envelope.Is(value)
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
