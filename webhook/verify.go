package webhook

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"hash"
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
	// maxHeaderBytes is the longest value of a header that is looked at.
	maxHeaderBytes = 4096
)

// errSignature is why most forgeries are refused.
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

// checkSecrets refuses what would let everybody in.
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

// check looks for a signature that belongs to one of the keys. It compares each
// with each, so that its time tells nothing.
func (k hmacKeys) check(signatures [][]byte, parts ...string) error {
	if len(signatures) > maxSignatures {
		return fmt.Errorf("there are more than %d signatures", maxSignatures)
	}
	found := false
	for _, key := range k.keys {
		mac := hmac.New(k.hash, key)
		for _, part := range parts {
			_, _ = mac.Write([]byte(part)) // it never fails
		}
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

// checkTime refuses a time stamp, in seconds of the Unix time, that is not within
// the window. One time has one text: zeros before it could be the end of a body that
// is signed without anything between the two.
func checkTime(r *Request, text string) error {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return errors.New("the time stamp is not a number of seconds")
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text != strconv.FormatInt(seconds, 10) {
		return errors.New("the time stamp is no time")
	}
	now, most := r.Received.Unix(), int64(window/time.Second)
	switch {
	case seconds < now-most:
		return fmt.Errorf("the time stamp is more than %s ago", window)
	case seconds > now+most:
		return fmt.Errorf("the time stamp is more than %s ahead: compare the clocks", window)
	default:
		return nil
	}
}
