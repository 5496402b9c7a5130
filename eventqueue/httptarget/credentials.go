package httptarget

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"eventsv2/webhook"
)

// credentials authenticate the worker to a target. The zero value sends none.
type credentials struct {
	audience string // of the identity token; "": none is sent
	tokens   *IDTokens
	header   http.Header
	signer   *webhook.StandardSigner // nil: requests are not signed
	ofURL    []string                // the secrets of the URL
}

// newCredentials makes the credentials of a Config.
func newCredentials(to address, config Config) (credentials, error) {
	c := credentials{audience: config.Audience, tokens: config.IDTokens, header: config.Header.Clone(), ofURL: to.secrets()}
	if c.audience != "" {
		if err := to.mayHaveToken(); err != nil {
			return c, fmt.Errorf("Audience: URL %w", err)
		}
		if c.tokens == nil {
			c.tokens = NewIDTokens()
		}
	}
	for name, values := range c.header {
		if err := checkHeaderName(name); err != nil {
			return c, fmt.Errorf("Header: %w", err)
		}
		if to.provesItself(c.audience) && http.CanonicalHeaderKey(name) == authorization {
			return c, errors.New("Header: " + twoAuthorizations)
		}
		for _, value := range values {
			if !validHeaderValue(value) {
				return c, fmt.Errorf("Header: the value of %s %s", name, badHeaderValue)
			}
		}
	}
	if len(config.SigningSecrets) > 0 {
		var err error
		if c.signer, err = webhook.NewStandardSigner(config.SigningSecrets...); err != nil {
			return c, fmt.Errorf("SigningSecrets: %w", err)
		}
	}
	return c, nil
}

// apply adds the credentials to a request, which is signed with an id. It blocks while an identity token
// is asked for, until ctx ends.
func (c credentials) apply(ctx context.Context, request *http.Request, id string, body []byte) (token string, err error) {
	for name, values := range c.header {
		request.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	if c.audience != "" {
		if token, err = c.tokens.Token(ctx, c.audience); err != nil {
			return "", err
		}
		request.Header.Set(authorization, "Bearer "+token)
	}
	if c.signer != nil {
		c.signer.Sign(request.Header, id, time.Now(), body)
	}
	return token, nil
}

// secrets returns the secrets in the header of a request, also as they are within the quotes of an error.
func (c credentials) secrets(sent http.Header) []string {
	secrets := slices.Clone(c.ofURL)
	for _, name := range append(slices.Collect(maps.Keys(c.header)), authorization) {
		for _, value := range sent.Values(name) {
			_, behind, _ := strings.Cut(value, " ") // that of Basic and Bearer
			secrets = append(secrets, value, behind)
		}
	}
	// One signature by each secret, as v1,base64.
	between := func(r rune) bool { return r == ' ' || r == ',' }
	secrets = append(secrets, strings.FieldsFunc(sent.Get(signature), between)...)
	for i, secret := range secrets {
		secrets[i] = printable([]byte(secret)) // as the answer is
		for _, text := range []string{secret, secrets[i]} {
			quoted := strconv.Quote(text)
			if quoted = printable([]byte(quoted[1 : len(quoted)-1])); quoted != secrets[i] {
				secrets = append(secrets, quoted)
			}
		}
	}
	return secrets
}

// redact leaves the secrets of a request, with the header sent, out of what its target has answered, which goes
// into logs and into the history: some servers repeat what they were sent.
func (c credentials) redact(answer string, sent http.Header) string {
	secrets := c.secrets(sent)
	answer, more := strings.CutSuffix(answer, cutOff)
	// The longest first, of those that are parts of others.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if len(secret) < leastSecret {
			continue // not one that is hard to guess, and a part of many texts
		}
		answer = strings.ReplaceAll(answer, secret, redacted)
		// The answer may end within it.
		for n := len(secret) - 1; n >= leastSecret; n-- {
			if begun, is := strings.CutSuffix(answer, secret[:n]); is {
				answer = begun + redacted
				break
			}
		}
	}
	if more {
		answer += cutOff
	}
	return answer
}

const (
	authorization = "Authorization"
	signature     = "Webhook-Signature"
	redacted      = "[redacted]"

	// leastSecret is the length of the shortest text that is redacted.
	leastSecret = 6

	twoAuthorizations = "Authorization is set twice: use one of a header of that name, an identity token, and a user in the URL"
	badHeaderValue    = "holds a character that a header cannot have, such as a line break at its end: remove it"
)

// secrets are the parts of the URL that are in no text of this package, as a target may repeat them.
func (a address) secrets() (all []string) {
	if password, has := a.url.User.Password(); has {
		all = append(all, password, base64.StdEncoding.EncodeToString([]byte(a.url.User.Username()+":"+password)))
	}
	for _, values := range a.url.Query() {
		for _, value := range values {
			all = append(all, printable([]byte(value)), url.QueryEscape(value))
		}
	}
	return append(all, a.url.RawQuery)
}

// origin is the audience of a target that names none: scheme, host and port.
func (a address) origin() string {
	return a.url.Scheme + "://" + a.url.Host
}

// mayHaveToken refuses to send a token to where others could read it, and beside a
// password.
func (a address) mayHaveToken() error {
	switch {
	case a.url.User != nil:
		return errors.New("has a user, and an identity token takes the same header: remove one of the two")
	case a.url.Scheme != "https" && !loopback(a.url.Hostname()):
		return errors.New("is not https: an identity token would be sent unencrypted, and whoever reads it could use it")
	}
	return nil
}

// provesItself reports whether the header Authorization is taken.
func (a address) provesItself(audience string) bool { return audience != "" || a.url.User != nil }

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// ownHeaders are set by the worker or by HTTP itself.
var ownHeaders = []string{"Connection", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Te", "Traceparent", "Tracestate",
	"Trailer", "Transfer-Encoding", "Upgrade"}

// checkHeaderName refuses what is no name of a header, and what is not for the owner of a
// target to set.
func checkHeaderName(name string) error {
	if name == "" || strings.ContainsFunc(name, notInHeaderName) {
		return fmt.Errorf("%q is no name of a header: use letters, digits and -", name)
	}
	canonical := http.CanonicalHeaderKey(name)
	for _, prefix := range []string{"Ce-", "Webhook-", "Proxy-"} {
		if strings.HasPrefix(canonical, prefix) {
			return fmt.Errorf("%s begins with %s, whose headers are the worker's own: use another name", name, prefix)
		}
	}
	if slices.Contains(ownHeaders, canonical) {
		return fmt.Errorf("%s is set by the worker: leave it out", name)
	}
	return nil
}

func notInHeaderName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func validHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F })
}

// environmentSecret reads a variable of the process.
func environmentSecret(variable string) (string, error) {
	if value := os.Getenv(variable); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %s is not set or empty: it has to hold a secret", variable)
}
