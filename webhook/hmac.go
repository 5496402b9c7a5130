package webhook

import (
	"crypto/sha1" //nolint:gosec // some senders sign with nothing else; as an HMAC it is secure
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strings"
	"unicode"
)

func init() {
	registerTrusting("hmac", func(o SchemeOptions) (Verifier, error) {
		return NewHMAC(HMAC{Secrets: o.Secrets, Header: o.HMAC["header"], Prefix: o.HMAC["prefix"],
			Algorithm: o.HMAC["algorithm"], Encoding: o.HMAC["encoding"], Signed: o.HMAC["signed"],
			TimestampHeader: o.HMAC["timestamp_header"], IDHeader: o.HMAC["id_header"], TypeHeader: o.HMAC["type_header"],
			TrustUnsignedID: o.TrustUnsignedID})
	})
}

// HMAC describes a sender that signs with an HMAC in a header.
type HMAC struct {
	// Secrets are the keys, at least one; any of them may have signed.
	Secrets []string

	// Header names the header with the signature: Prefix, and the HMAC in Encoding.
	Header string
	Prefix string

	// Algorithm is sha256 (the default), sha512 or sha1.
	Algorithm string
	// Encoding is hex (the default; capitals are accepted) or base64.
	Encoding string

	// Signed is the template of the signed text, in ASCII: {body} once, and perhaps
	// {timestamp} and {id}. An {id} before the body has to be followed, and one after it
	// preceded, by a character that is neither a letter nor a digit: otherwise part of
	// the body could be read as part of the id. Ids with this character are refused.
	// Default: {body}.
	Signed string

	// TimestampHeader names the header with the Unix time in seconds. The time is checked,
	// so it has to be signed.
	TimestampHeader string
	// IDHeader names the header with the id of the delivery, TypeHeader the one with the
	// type of event. If one of them is set, each request must have that header.
	//
	// The type is not signed: an attacker who has recorded a request can send it again
	// with another type. TypeFromBody takes it from the body instead.
	IDHeader, TypeHeader string

	// TrustUnsignedID means that repeats are recognised by the id in IDHeader although it
	// is not signed. Without an IDHeader they are not recognised at all. An attacker who
	// has recorded a request can then send it again as a new one. Default: unless {id} is
	// signed, a delivery is identified by the signed text, so that another delivery of
	// exactly the same bytes is a repeat.
	TrustUnsignedID bool
}

var (
	// idGoesOn finds an id without a separator after it, idBegan one without a
	// separator before it.
	idGoesOn = regexp.MustCompile(`\{id\}([{A-Za-z0-9]|$)`)
	idBegan  = regexp.MustCompile(`(^|[}A-Za-z0-9])\{id\}`)
	// placeholders are the parts of Signed that are not separators.
	placeholders = regexp.MustCompile(`\{id\}|\{timestamp\}|\{body\}|[A-Za-z0-9]`)
)

type hmacVerifier struct {
	config HMAC
	keys   hmacKeys
	before string // of the body, in Signed
	after  string
	// signsID means that the id is signed; it may then not contain any of separators.
	signsID    bool
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
	case strings.ContainsFunc(config.Signed, func(c rune) bool { return c > unicode.MaxASCII }):
		err = fmt.Errorf("signed is %q: it must be ASCII", config.Signed)
	case signs("{id}") && config.TrustUnsignedID:
		err = errors.New("the id is signed: there is no need to trust it")
	case reaches(v.before, v.after):
		err = fmt.Errorf("signed is %q: between {id} and the rest, on the side of {body}, must be a character that is no letter and no digit, "+
			"like {id}.{body} or {body}.{id}: else an id could reach into what follows, and pass for part of the body", config.Signed)
	default:
		v.keys, err = newKeys(newHash, config.Secrets)
	}
	if v.signsID = signs("{id}"); v.signsID {
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
	// With a separator in the id, part of the signed text could be moved from the body
	// into the id, or back.
	if strings.ContainsAny(verified.Delivery, v.separators) {
		return verified, fmt.Errorf("the id in %s holds one of %q, which part it from the rest", v.config.IDHeader, v.separators)
	}
	fill := strings.NewReplacer("{id}", verified.Delivery, "{timestamp}", timestamp)
	what := signed{fill.Replace(v.before), r.Body, fill.Replace(v.after)}
	if err := v.keys.check([][]byte{signature}, what); err != nil {
		return verified, err
	}
	if !v.signsID && !v.config.TrustUnsignedID {
		verified.Delivery = what.delivery()
	}
	return verified, nil
}

// reaches reports whether two different requests could have the same signed text. The
// part before the body is read from the front and the part after it from the end, since
// the body may contain anything: the text of the template is known, a time has a fixed
// length, and an id ends at a character that no id contains.
func reaches(before, after string) bool {
	return idGoesOn.MatchString(before) || idBegan.MatchString(after)
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
