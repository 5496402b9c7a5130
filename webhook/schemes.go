package webhook

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SchemeOptions are the options of a scheme, as the handlers file has them for a source.
type SchemeOptions struct {
	// Secrets are the keys: any of them may have signed.
	Secrets []string
	// TrustUnsignedID is as for HMAC, for the schemes github and hmac.
	TrustUnsignedID bool
	// HMAC are the fields of HMAC, by their names in the handlers file. Only the scheme
	// hmac has them.
	HMAC map[string]string
	// OIDC is for the schemes cloud-scheduler, eventarc and pubsub, which have no Secrets.
	OIDC *OIDC
}

// scheme makes the Verifier of a source.
type scheme struct {
	verifier func(SchemeOptions) (Verifier, error)
	trusts   bool // it accepts TrustUnsignedID
	tokens   bool // its requests carry a token of OIDC
}

// schemes has the schemes by their names in handlers files. The file of each registers it.
var schemes = map[string]scheme{}

func register(name string, verifier func(secrets ...string) (Verifier, error)) {
	schemes[name] = scheme{verifier: func(o SchemeOptions) (Verifier, error) { return verifier(o.Secrets...) }}
}

func registerTrusting(name string, verifier func(SchemeOptions) (Verifier, error)) {
	schemes[name] = scheme{verifier: verifier, trusts: true}
}

func registerTokens(name string, verifier func(OIDC) (Verifier, error)) {
	schemes[name] = scheme{tokens: true, verifier: func(o SchemeOptions) (Verifier, error) { return verifier(*o.OIDC) }}
}

// Schemes lists the names of the schemes that NewVerifier knows, in order.
func Schemes() []string { return slices.Sorted(maps.Keys(schemes)) }

// NewVerifier makes the Verifier of a scheme by its name in handlers files. The error
// names the options that contradict each other, or the existing names.
func NewVerifier(name string, options SchemeOptions) (Verifier, error) {
	s, known := schemes[name]
	switch {
	case (name == "hmac") != (options.HMAC != nil):
		return nil, errors.New("the scheme hmac and the keys under hmac go together")
	case options.TrustUnsignedID && !s.trusts:
		return nil, errors.New("trust_unsigned_id is for the schemes github and hmac: the others sign what identifies repeats, or nothing at all")
	case !known:
		names := Schemes()
		last := len(names) - 1
		return nil, fmt.Errorf("scheme %q: it must be %s or %s", name, strings.Join(names[:last], ", "), names[last])
	case s.tokens && options.OIDC == nil:
		return nil, fmt.Errorf("scheme %s: oidc is missing: say which tokens are accepted, as {audience: …, service_accounts: […]}", name)
	case s.tokens && len(options.Secrets) > 0:
		return nil, fmt.Errorf("scheme %s: its requests carry a token, and no secret signs them: remove secrets", name)
	case !s.tokens && options.OIDC != nil:
		return nil, fmt.Errorf("scheme %s: oidc is for the schemes cloud-scheduler, eventarc and pubsub: remove it", name)
	}
	return s.verifier(options)
}
