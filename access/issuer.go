package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"eventsv2/eventqueue/audit"
)

const (
	iapHeader = "X-Goog-Iap-Jwt-Assertion"
	iapIssuer = "https://cloud.google.com/iap"
	// googleIssuer is how Google is found; its JWTs may leave the scheme out.
	googleIssuer = "https://accounts.google.com"
	iapKeys      = "https://www.gstatic.com/iap/verify/public_key-jwk"
	// maxJWTBytes is how long a JWT may be.
	maxJWTBytes = 8 << 10
	// discoveryRest is how long an issuer that could not be reached is left alone.
	discoveryRest = 5 * time.Second
	// issuerTimeout bounds a request to an issuer.
	issuerTimeout = 5 * time.Second
)

// signingAlgorithms use public keys: a JWT that is signed with a shared secret, or not at all, is refused.
var signingAlgorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Mapping grants something to callers whose JWT has one of the Values in Claim.
type Mapping struct {
	// Claim is the name of a claim, a text or a list of texts, such as email, sub, hd or groups. An email has
	// to be verified.
	Claim string
	// Values are those that the grant is for: one of them has to be in the claim, letter by letter.
	Values []string
	Grant
}

// Issuer vouches for people and programs with JWTs: an issuer of OpenID Connect, or Google's
// Identity-Aware Proxy. It is safe for concurrent use.
type Issuer struct {
	// TokensFor is for how long tokens may be valid that those make whom it vouches for; 0: for as long as their JWT. It is
	// set before the Issuer is used.
	TokensFor time.Duration

	url      string
	audience string
	iap      bool
	keys     string // where those of IAP are
	mappings []Mapping
	client   *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil before the first success
	restsTo  time.Time
	failure  error
}

// NewIssuer makes an Issuer of OpenID Connect. Its keys are asked for at the first JWT. The audience is what
// the JWTs have to be meant for: mostly the id of an OAuth client.
func NewIssuer(url, audience string, mappings []Mapping) (*Issuer, error) {
	i := &Issuer{url: url, audience: audience, mappings: mappings, client: newClient()}
	if !strings.HasPrefix(url, "https://") && !onLoopback(url) {
		return nil, fmt.Errorf("issuer: %q is not the address of one: it begins with https://", url)
	}
	return i, i.validate()
}

// onLoopback reports whether an address is one of the machine itself, as in tests.
func onLoopback(url string) bool {
	rest, plain := strings.CutPrefix(url, "http://")
	host, _, _ := strings.Cut(rest, "/")
	return plain && LoopbackHost(host)
}

// NewIAP makes an Issuer for programs behind Google's Identity-Aware Proxy, which signs each request. The
// audience is the one that the proxy shows as "Signed Header JWT Audience".
func NewIAP(audience string, mappings []Mapping) (*Issuer, error) {
	i := &Issuer{url: iapIssuer, audience: audience, iap: true, keys: iapKeys, mappings: mappings, client: newClient()}
	return i, i.validate()
}

func newClient() *http.Client {
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: issuerTimeout}).DialContext, TLSHandshakeTimeout: issuerTimeout,
		ResponseHeaderTimeout: issuerTimeout, Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true}
	return &http.Client{Transport: keysTransport{transport}, Timeout: issuerTimeout}
}

func (i *Issuer) validate() error {
	if i.audience == "" {
		return errors.New("audience: is missing: without it everybody would be let in whom the issuer knows")
	}
	if len(i.mappings) == 0 {
		return errors.New("grants: there is none: nobody could do anything")
	}
	for n, m := range i.mappings {
		if m.Claim == "" || len(m.Values) == 0 || slices.Contains(m.Values, "") {
			return fmt.Errorf("grants: number %d needs a claim and values", n+1)
		}
		for i, value := range m.Values {
			if slices.Contains(m.Values[:i], value) {
				return fmt.Errorf("grants: number %d: values: %q is there twice: remove one of the two", n+1, value)
			}
		}
		if err := m.Validate(); err != nil {
			return fmt.Errorf("grants: number %d: %w", n+1, err)
		}
	}
	return nil
}

// verify returns what checks JWTs, and asks the issuer for its keys if they are not known yet.
func (i *Issuer) verify() (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	if time.Now().Before(i.restsTo) {
		return nil, i.failure
	}
	// The verifier fetches new keys for as long as it is used, so its context belongs to no request.
	ctx := oidc.ClientContext(context.Background(), i.client)
	config := &oidc.Config{ClientID: i.audience, SupportedSigningAlgs: signingAlgorithms}
	if i.iap {
		config.SupportedSigningAlgs = []string{oidc.ES256}
		i.verifier = oidc.NewVerifier(i.url, watchedKeys{oidc.NewRemoteKeySet(ctx, i.keys)}, config)
		return i.verifier, nil
	}
	asking, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(asking, i.url)
	if err != nil {
		i.restsTo, i.failure = time.Now().Add(discoveryRest), fmt.Errorf("ask the issuer %s for its keys: %w", i.url, err)
		return nil, i.failure
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, fmt.Errorf("read what the issuer %s says of its keys: %w", i.url, err)
	}
	i.verifier = oidc.NewVerifier(i.url, watchedKeys{oidc.NewRemoteKeySet(ctx, document.Keys)}, config)
	return i.verifier, nil
}

// identify returns who a JWT is of. The error is ErrRefused for one that the issuer has not made for this
// audience, and for one that nothing is granted to.
func (i *Issuer) identify(ctx context.Context, jwt string) (Identity, error) {
	verifier, err := i.verify()
	if err != nil {
		return Identity{}, err
	}
	ctx, failure := withKeysFailure(ctx)
	token, err := verifier.Verify(ctx, jwt)
	if *failure != nil {
		return Identity{}, fmt.Errorf("ask the issuer %s for its keys: %w", i.url, *failure)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("%w (%w)", ErrRefused, err)
	}
	claims := map[string]json.RawMessage{}
	if err := token.Claims(&claims); err != nil {
		return Identity{}, ErrRefused
	}
	identity := Identity{Name: "oidc:" + i.nameOf(claims, token.Subject), Key: i.keyOf(token.Subject),
		EndsIn: max(time.Until(token.Expiry), 1), TokensFor: i.TokensFor, ends: token.Expiry}
	for _, m := range i.mappings {
		if i.matches(m, claims) {
			identity.Grants = append(identity.Grants, m.Grant)
		}
	}
	if identity.Grants == nil {
		return Identity{}, ErrRefused
	}
	return identity, nil
}

// keyOf is the key of a subject: its hash, if it is longer than the audit log takes.
func (i *Issuer) keyOf(subject string) string {
	if key := "oidc:" + i.url + " " + subject; len(key) <= audit.MaxNameBytes {
		return key
	}
	sum := sha256.Sum256([]byte(i.url + " " + subject))
	return "oidc:sha256:" + hex.EncodeToString(sum[:])
}

// vouches reports whether a JWT says that the issuer has made it, before anybody checks that.
func (i *Issuer) vouches(jwt string) bool {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return false
	}
	return claims.Issuer == i.url || i.url == googleIssuer && "https://"+claims.Issuer == i.url
}

// nameOf is the name for the audit log: the verified email, or sub: and the subject, which may be any text and look like an email.
func (i *Issuer) nameOf(claims map[string]json.RawMessage, subject string) string {
	if email := textsOf(claims["email"]); len(email) == 1 && i.emailVerified(claims) {
		return email[0]
	}
	return "sub:" + subject
}

func (i *Issuer) matches(m Mapping, claims map[string]json.RawMessage) bool {
	if m.Claim == "email" && !i.emailVerified(claims) {
		return false
	}
	return slices.ContainsFunc(textsOf(claims[m.Claim]), func(text string) bool { return slices.Contains(m.Values, text) })
}

// emailVerified reports whether the issuer has verified the email. IAP verifies all.
func (i *Issuer) emailVerified(claims map[string]json.RawMessage) bool {
	return i.iap || string(claims["email_verified"]) == "true"
}

// textsOf returns the texts of a claim: a text, or a list of them.
func textsOf(claim json.RawMessage) []string {
	var text string
	if json.Unmarshal(claim, &text) == nil && text != "" {
		return []string{text}
	}
	var list []string
	if json.Unmarshal(claim, &list) == nil {
		return list
	}
	return nil
}
