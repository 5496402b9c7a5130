package webhook

import (
	"crypto/sha1" //nolint:gosec // some senders sign with nothing else; as an HMAC it holds
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strings"
)

// HMAC describes a sender that signs with an HMAC in a header.
type HMAC struct {
	// Secrets are the keys: any of them may have signed. At least one.
	Secrets []string

	// Header has the signature: Prefix, and the HMAC in Encoding.
	Header string
	Prefix string

	// Algorithm is sha256 (the default), sha512 or sha1.
	Algorithm string
	// Encoding is hex (the default; capitals are as good) or base64.
	Encoding string

	// Signed is what is signed: {body} once, and perhaps {timestamp} and {id}, which
	// something that is in no id must part from the rest. Default: {body}.
	Signed string

	// TimestampHeader has the time in seconds of the Unix time. It is checked, so it
	// has to be signed.
	TimestampHeader string
	// IDHeader has the id of the delivery, and TypeHeader the type of event. Those
	// that are named must be there.
	IDHeader, TypeHeader string
}

var (
	idIsParted = regexp.MustCompile(`\{id\}([^{}A-Za-z0-9]|$)`)
	// placeholders are the parts of Signed that are no separators.
	placeholders = regexp.MustCompile(`\{id\}|\{timestamp\}|\{body\}|[A-Za-z0-9]`)
)

type hmacVerifier struct {
	config HMAC
	keys   hmacKeys
	before string // of the body, in Signed
	after  string
	// separators are what may not be in an id that is signed.
	separators string
}

// NewHMAC makes the Verifier of a sender with a scheme of its own. It refuses an
// empty secret, and a scheme that protects nothing.
func NewHMAC(config HMAC) (Verifier, error) {
	hashes := map[string]func() hash.Hash{"": sha256.New, "sha256": sha256.New, "sha512": sha512.New, "sha1": sha1.New}
	newHash, ok := hashes[config.Algorithm]
	if !ok {
		return nil, fmt.Errorf("webhook.NewHMAC: algorithm %q: it must be sha256, sha512 or sha1", config.Algorithm)
	}
	if config.Signed == "" {
		config.Signed = "{body}"
	}
	v := &hmacVerifier{config: config}
	v.before, v.after, _ = strings.Cut(config.Signed, "{body}")
	signs := func(part string) bool { return strings.Contains(v.before+v.after, part) }
	var err error
	switch {
	case config.Header == "":
		err = errors.New("header is missing: name the one with the signature")
	case config.Encoding != "" && config.Encoding != "hex" && config.Encoding != "base64":
		err = fmt.Errorf("encoding %q: it must be hex or base64", config.Encoding)
	case strings.Count(config.Signed, "{body}") != 1:
		err = errors.New("signed must have {body} once")
	case strings.ContainsAny(placeholders.ReplaceAllString(config.Signed, ""), "{}"):
		err = fmt.Errorf("signed is %q: {body}, {timestamp} and {id} are all that may stand in braces", config.Signed)
	case signs("{timestamp}") != (config.TimestampHeader != ""):
		err = errors.New("a timestamp header and {timestamp} in what is signed go together: without the one the other is worth nothing")
	case signs("{id}") && config.IDHeader == "":
		err = errors.New("{id} is signed, and no header has it")
	case signs("{id}") && !idIsParted.MatchString(config.Signed):
		err = errors.New("{id} must be followed by a character that is no letter and no digit: else an id could reach into what follows")
	default:
		v.keys, err = newKeys(newHash, config.Secrets)
	}
	if signs("{id}") {
		v.separators = placeholders.ReplaceAllString(config.Signed, "")
	}
	if err != nil {
		return nil, fmt.Errorf("webhook.NewHMAC: %w", err)
	}
	return v, nil
}

// Verify implements Verifier.
func (v *hmacVerifier) Verify(r *Request) (verified Verified, err error) {
	text, err := header(r, v.config.Header)
	if err != nil {
		return verified, err
	}
	signature, err := v.decode(text)
	if err != nil {
		return verified, err
	}
	var timestamp string
	for _, part := range []struct {
		name string
		into *string
	}{{v.config.IDHeader, &verified.Delivery}, {v.config.TypeHeader, &verified.Type}, {v.config.TimestampHeader, &timestamp}} {
		if part.name == "" {
			continue
		}
		if *part.into, err = header(r, part.name); err != nil {
			return verified, err
		}
	}
	if v.config.TimestampHeader != "" {
		if err := checkTime(r, timestamp); err != nil {
			return verified, err
		}
	}
	// An id with the text that parts it from the body could move what is signed from
	// the one into the other.
	if strings.ContainsAny(verified.Delivery, v.separators) {
		return verified, fmt.Errorf("the id in %s holds one of %q, which part it from the rest", v.config.IDHeader, v.separators)
	}
	fill := strings.NewReplacer("{id}", verified.Delivery, "{timestamp}", timestamp)
	return verified, v.keys.check([][]byte{signature}, fill.Replace(v.before), string(r.Body), fill.Replace(v.after))
}

func (v *hmacVerifier) decode(text string) (signature []byte, err error) {
	encoded, ok := strings.CutPrefix(text, v.config.Prefix)
	if !ok {
		return nil, fmt.Errorf("the header %s does not begin with %q: it is of another algorithm or version", v.config.Header, v.config.Prefix)
	}
	if v.config.Encoding == "base64" {
		signature, err = base64.StdEncoding.Strict().DecodeString(encoded)
	} else {
		signature, err = hex.DecodeString(encoded)
	}
	if err != nil {
		return nil, fmt.Errorf("the header %s holds no signature in the encoding that is expected", v.config.Header)
	}
	return signature, nil
}
