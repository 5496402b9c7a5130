package cleanup

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestParseTTL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		ttl  time.Duration
		back string
	}{
		"replace":                 {0, "replace"},
		"0s":                      {0, "replace"},
		"3d12h":                   {84 * time.Hour, "3d12h"},
		"1w":                      {7 * 24 * time.Hour, "7d"},
		"90m":                     {90 * time.Minute, "1h30m"},
		"007s":                    {7 * time.Second, "7s"},
		"1w2d3h4m5s6ms":           {219*time.Hour + 4*time.Minute + 5*time.Second + 6*time.Millisecond, "9d3h4m5s6ms"},
		"106751d23h47m16s854ms":   {math.MaxInt64 / 1_000_000 * 1_000_000, "106751d23h47m16s854ms"},
		"0w0d0h0m0s0ms":           {0, "replace"},
		"000000000000000000001ms": {time.Millisecond, "1ms"},
	} {
		got, err := ParseTTL(text)
		if err != nil || got != TTL(want.ttl) || got.String() != want.back {
			t.Errorf("%s is %d, written %s, %v; want %d, %s", text, got, got, err, want.ttl, want.back)
		}
	}
	for text, want := range map[string]string{
		"":                      "ttl is empty: write a duration such as 3d12h",
		"12":                    `ttl "12": 12 has no unit: write`,
		"3d12":                  `ttl "3d12": 12 has no unit`,
		"3days":                 `"days" is not a unit`,
		"3D":                    `"D" is not a unit`,
		"1.5h":                  `"." is not a unit`,
		"-3d":                   `"-3d" does not begin with a digit`,
		" 3d":                   `does not begin with a digit`,
		"3d 12h":                `"d " is not a unit`,
		"Replace":               `does not begin with a digit`,
		"12h3d":                 `d stands after h: write the largest unit first`,
		"1h1h":                  `h stands after h`,
		"1s5m":                  `m stands after s`,
		"106751d23h47m16s855ms": "is too long",
		"99999999999999999999d": "is too long",
	} {
		if got, err := ParseTTL(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

// TestTTLSurvivesARoundTrip: what String writes is read as the same, and nothing that is read
// makes ParseTTL panic or answer with what is not valid.
func TestTTLSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ttl := TTL(rapid.Int64Range(0, math.MaxInt64/1_000_000).Draw(t, "ttl")) * TTL(time.Millisecond)
		if back, err := ParseTTL(ttl.String()); err != nil || back != ttl {
			t.Fatalf("%d is written %s, and read as %d, %v", ttl, ttl, back, err)
		}
		text := rapid.StringMatching(`([0-9]{1,20}[wdhms]{0,2}){0,4}`).Draw(t, "text")
		if ttl, err := ParseTTL(text); err == nil && ttl.Validate() != nil {
			t.Fatalf("%s is read as %d: %v", text, ttl, ttl.Validate())
		}
	})
}

func TestConfigIsReadFromYAMLAndJSON(t *testing.T) {
	t.Parallel()
	type settings struct {
		Cleanup Config  `json:"cleanup" yaml:"cleanup"`
		Other   *Config `json:"other" yaml:"other"`
	}
	want := Config{Key: "my_publication", TTL: TTL(84 * time.Hour), Inputs: []string{"target", "channel"}}
	var fromYAML, fromJSON settings
	if err := yaml.Unmarshal([]byte("cleanup:\n  key: my_publication\n  ttl: 3d12h\n  inputs: [target, channel]\n"), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"cleanup": {"key": "my_publication", "ttl": "3d12h", "inputs": ["target", "channel"]}}`), &fromJSON); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]settings{"YAML": fromYAML, "JSON": fromJSON} {
		text, err := json.Marshal(got.Cleanup)
		if err != nil || !reflect.DeepEqual(got.Cleanup, want) || string(text) != `{"key":"my_publication","ttl":"3d12h","inputs":["target","channel"]}` || got.Other != nil {
			t.Errorf("%s is read as %s, %v, want %+v", name, text, err, want)
		}
	}
	written, err := yaml.Marshal(Config{Key: "k"})
	if err != nil || string(written) != "key: k\nttl: replace\n" {
		t.Errorf("in YAML it is %q, %v", written, err)
	}
	for _, text := range []string{"cleanup: {key: k}\n", "cleanup: {key: k, ttl: replace}\n"} {
		var read settings
		if err := yaml.Unmarshal([]byte(text), &read); err != nil || read.Cleanup.TTL != Replace || read.Cleanup.Key != "k" {
			t.Errorf("%s is read as %+v, %v", text, read, err)
		}
	}
}

func TestInvalidConfigIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                      `key is missing`,
		`{"key": ""}`:                             `key is missing`,
		`{"key": "a\nb"}`:                         `control character`,
		`{"key": "` + long(256) + `"}`:            `key is 256 bytes long: the limit is 255`,
		`{"key": "k", "tll": "7d"}`:               `unknown field "tll"`,
		`{"key": "k", "ttl": "7"}`:                `7 has no unit`,
		`{"key": "k", "ttl": 7}`:                  `write a duration such as 3d12h`,
		`{"key": "k", "ttl": ""}`:                 `ttl is empty`,
		`{"key": "k", "ttl": null}`:               `write a duration such as 3d12h`,
		`{"key": "k", "inputs": ["a", ""]}`:       `inputs holds an empty name`,
		`{"key": "k", "inputs": ["b", "a", "b"]}`: `inputs holds "b" twice`,
		`{"key": ["k"]}`:                          `cleanup: `,
		`["k"]`:                                   `cleanup: `,
		// a second spelling would be read in place of the first
		`{"key": "k", "ttl": "7d", "TTL": "replace"}`: `unknown field "TTL"`,
	} {
		config := Config{Key: "before"}
		for name, unmarshal := range map[string]func([]byte, any) error{"JSON": json.Unmarshal, "YAML": yaml.Unmarshal} {
			if err := unmarshal([]byte(text), &config); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want an error with %q", name, text, err, want)
			}
			if config.Key != "before" {
				t.Errorf("%s %s was taken over: %+v", name, text, config)
			}
		}
	}
	if err := json.Unmarshal([]byte(`{"key": "k", "ttl": "7d", "ttl": "replace"}`), new(Config)); err == nil {
		t.Error("a ttl that is there twice is not refused")
	}
	for _, config := range []Config{{Key: "k", TTL: -1}, {Key: "k", TTL: 1}, {Key: "\xff"}} {
		if err := config.Validate(); err == nil {
			t.Errorf("%+v is valid", config)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }
