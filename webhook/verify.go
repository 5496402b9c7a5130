package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// window is how far a time stamp may be from the clock.
const window = 5 * time.Minute

const (
	// maxSecrets and maxSignatures bound the work that a request can cause.
	maxSecrets    = 16
	maxSignatures = 16
	// maxHeaderBytes is the longest value of a header that is read.
	maxHeaderBytes = 4096
)

// errSignature is the error for a signature that does not match.
var errSignature = errors.New("no signature in the request belongs to its body and one of the secrets")

// hmacKeys are the secrets of a source.
type hmacKeys struct {
	hash func() hash.Hash
	keys [][]byte
}

func newKeys(newHash func() hash.Hash, secrets []string) (hmacKeys, error) {
	k := hmacKeys{hash: newHash}
	if err := checkSecrets(secrets); err != nil {
		return k, err
	}
	for _, secret := range secrets {
		k.keys = append(k.keys, []byte(secret))
	}
	return k, nil
}

// checkSecrets refuses secrets with which anybody could sign.
func checkSecrets(secrets []string) error {
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return fmt.Errorf("there are %d secrets: give 1 to %d", len(secrets), maxSecrets)
	}
	for i, secret := range secrets {
		if strings.TrimSpace(secret) == "" {
			return fmt.Errorf("secret %d is empty: everybody could sign with it", i+1)
		}
	}
	return nil
}

// signed is the text that a sender signs: the body, and the texts before and after it.
// The body is never copied: it can be large, and there may be many keys.
type signed struct {
	before string
	body   []byte
	after  string
}

func (s signed) writeTo(h hash.Hash) {
	_, _ = io.WriteString(h, s.before) // a hash never returns an error
	_, _ = h.Write(s.body)
	_, _ = io.WriteString(h, s.after)
}

// delivery identifies repeats by the signed text, for schemes that sign no id.
func (s signed) delivery() string {
	h := sha256.New()
	s.writeTo(h)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// check searches for a signature by one of the keys. It compares each signature with
// each key, so that its time reveals nothing.
func (k hmacKeys) check(signatures [][]byte, text signed) error {
	if len(signatures) > maxSignatures {
		return fmt.Errorf("there are more than %d signatures", maxSignatures)
	}
	found := false
	for _, key := range k.keys {
		mac := hmac.New(k.hash, key)
		text.writeTo(mac)
		want := mac.Sum(nil)
		for _, signature := range signatures {
			equal := hmac.Equal(want, signature)
			found = found || equal
		}
	}
	if !found {
		return errSignature
	}
	return nil
}

// header returns the only value of a header.
func header(r *Request, name string) (string, error) {
	values := r.Header[http.CanonicalHeaderKey(name)]
	switch {
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("the header %s is missing", name)
	case len(values) > 1:
		return "", fmt.Errorf("the header %s is there %d times", name, len(values))
	case len(values[0]) > maxHeaderBytes:
		return "", fmt.Errorf("the header %s is longer than %d bytes", name, maxHeaderBytes)
	default:
		return values[0], nil
	}
}

// timeDigits is the length of every time stamp, from 2001 to 2286. Since the length is
// fixed, a signed text without a separator between time and body can be divided in only
// one way.
const timeDigits = 10

// timeError describes an invalid time of a request.
type timeError string

func (e timeError) Error() string { return string(e) }

// checkTime refuses a time stamp, in seconds of the Unix time, that is not within
// the window.
func checkTime(r *Request, text string) error {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return errors.New("the time stamp is not a number of seconds")
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text != strconv.FormatInt(seconds, 10) || len(text) != timeDigits {
		return errors.New("the time stamp is no time")
	}
	now, most := r.Received.Unix(), int64(window/time.Second)
	switch {
	case seconds < now-most:
		return timeError(fmt.Sprintf("the time stamp is more than %s ago", window))
	case seconds > now+most:
		return timeError(fmt.Sprintf("the time stamp is more than %s ahead: compare the clocks", window))
	default:
		return nil
	}
}

// collect reads the signatures of one version from a list. It ignores those of other
// versions.
func collect(list, separator, version string, decode func(string) ([]byte, error)) ([][]byte, error) {
	var signatures [][]byte
	for text := range strings.SplitSeq(list, separator) {
		encoded, ok := strings.CutPrefix(text, version)
		if !ok {
			continue
		}
		signature, err := decode(encoded)
		if err != nil {
			return nil, errors.New("a signature is not in the encoding that is expected")
		}
		signatures = append(signatures, signature)
	}
	if len(signatures) == 0 {
		return nil, fmt.Errorf("there is no signature of version %s", strings.Trim(version, ",="))
	}
	return signatures, nil
}

// envelope is the JSON object in which many senders wrap their data.
type envelope struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// envelopeOf reads the envelope of a genuine body. A body of another form has an empty
// one.
func envelopeOf(body []byte) (e envelope) {
	if json.Unmarshal(body, &e) != nil {
		return envelope{}
	}
	return e
}
