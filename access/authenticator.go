package access

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ErrNoCredentials is returned for a request that says nothing of who makes it.
var ErrNoCredentials = errors.New("the request has no credentials: send a token as Authorization: Bearer " + Prefix + "…")

// Authenticator finds out who makes a request. It is safe for concurrent use.
type Authenticator struct {
	// Tokens lets holders of tokens in.
	Tokens *Tokens
	// Issuers let in whoever they vouch for.
	Issuers []*Issuer
	// Loopback lets requests of the machine itself in with every right, while there is neither a token
	// nor an issuer. Set it only where the server listens on loopback alone.
	Loopback bool
}

// Local is the identity of all requests while no access is configured.
var Local = Identity{Name: "local", Grants: []Grant{{Verbs: Verbs()}}, Key: "local"}

// Authenticate returns who makes a request: by the header Authorization with a token or a JWT, by that of
// Google's Identity-Aware Proxy, or, while no access is configured, by being on the machine. The error is
// ErrNoCredentials or ErrRefused, or says why it could not be found out. It blocks for one statement, and for
// a request to an issuer whose keys are not known yet.
func (a *Authenticator) Authenticate(r *http.Request) (Identity, error) {
	who, err := a.authenticate(r)
	noteIdentity(r.Context(), who, false)
	return who, err
}

func (a *Authenticator) authenticate(r *http.Request) (Identity, error) {
	if assertions := r.Header.Values(iapHeader); len(assertions) > 0 && a.hasIAP() {
		if len(assertions) > 1 {
			return Identity{}, ErrRefused
		}
		return a.byIssuer(r.Context(), assertions[0], true)
	}
	credentials := r.Header.Values("Authorization")
	switch len(credentials) {
	case 0:
		return a.byPlace(r)
	case 1:
		scheme, secret, _ := strings.Cut(credentials[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Identity{}, ErrRefused
		}
		return a.BySecret(r.Context(), strings.TrimSpace(secret))
	default:
		return Identity{}, ErrRefused
	}
}

// BySecret returns who has a token, or a JWT of an issuer: for the login of a dashboard. The error is
// ErrRefused for a token that is not valid.
func (a *Authenticator) BySecret(ctx context.Context, secret string) (Identity, error) {
	if strings.HasPrefix(secret, Prefix) {
		return a.Tokens.Identify(ctx, secret)
	}
	return a.byIssuer(ctx, secret, false)
}

// Configured reports whether any access is configured: an issuer, or a token, valid or not.
func (a *Authenticator) Configured(ctx context.Context) (bool, error) {
	if len(a.Issuers) > 0 {
		return true, nil
	}
	return a.Tokens.Any(ctx)
}

// byPlace lets the machine itself in while no access is configured.
func (a *Authenticator) byPlace(r *http.Request) (Identity, error) {
	if !a.Loopback || !fromLoopback(r) {
		return Identity{}, ErrNoCredentials
	}
	configured, err := a.Configured(r.Context())
	switch {
	case err != nil:
		return Identity{}, err
	case configured:
		return Identity{}, ErrNoCredentials
	default:
		return Local, nil
	}
}

// proxyHeaders are headers, or prefixes of headers, that proxies add to a request.
var (
	proxyHeaders  = []string{"Forwarded", "Via", "Client-Ip", "True-Client-Ip", "Fastly-Client-Ip", "Cdn-Loop"}
	proxyPrefixes = []string{"X-Forwarded", "X-Real-", "X-Client-", "X-Cluster-Client-", "X-Original-", "X-Envoy-", "X-Cloud-Trace-", "X-Appengine-", "X-Goog-", "X-Amzn-", "X-Azure-", "Cf-"}
)

// fromLoopback reports whether a request comes from the machine and was meant for it. A page that a browser
// shows can have a name of its own lead to 127.0.0.1; the header Host has that name. A proxy on the machine passes on
// what others send: it shows by what it adds, whatever the value, and by HTTP/1.0, which nginx sends unless it is
// told otherwise. One that adds nothing cannot be told from a program of the machine.
func fromLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for header := range r.Header {
		if slices.Contains(proxyHeaders, header) || slices.ContainsFunc(proxyPrefixes, func(prefix string) bool { return strings.HasPrefix(header, prefix) }) {
			return false
		}
	}
	return r.ProtoAtLeast(1, 1) && LoopbackHost(r.Host)
}

// LoopbackHost reports whether a host, with or without a port, is the machine itself.
func LoopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

func (a *Authenticator) hasIAP() bool {
	for _, issuer := range a.Issuers {
		if issuer.iap {
			return true
		}
	}
	return false
}

// byIssuer asks those issuers that a JWT names: IAP or the others. An unreachable issuer does not affect the others.
func (a *Authenticator) byIssuer(ctx context.Context, jwt string, iap bool) (Identity, error) {
	if len(jwt) > maxJWTBytes {
		return Identity{}, ErrRefused
	}
	for _, issuer := range a.Issuers {
		if issuer.iap != iap || !issuer.vouches(jwt) {
			continue
		}
		identity, err := issuer.identify(ctx, jwt)
		if err == nil || !errors.Is(err, ErrRefused) {
			return identity, err
		}
	}
	return Identity{}, ErrRefused
}
