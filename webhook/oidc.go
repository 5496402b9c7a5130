package webhook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"eventsv2/internal/jwks"
)

const (
	// googleIssuer makes the tokens of Google; it may leave https:// out of them.
	googleIssuer = "https://accounts.google.com"
	// googleKeys is where its keys are.
	googleKeys = "https://www.googleapis.com/oauth2/v3/certs"
)

// OIDC says which tokens of OpenID Connect prove that a request is genuine. Everybody with a project of Google's can
// have it make a token for any audience, so the service account counts as well.
type OIDC struct {
	// Audience is the audience that the tokens are for: that of the subscription, the trigger or the job.
	Audience string
	// ServiceAccounts are the e-mails of the service accounts whose tokens are accepted, 1 to 16.
	ServiceAccounts []string
	// Issuer makes the tokens, and Keys is the address of the keys with which it signs them, by RS256. Set both or neither.
	// Default (""): Google.
	Issuer, Keys string
}

// tokens judges the tokens of requests.
type tokens struct {
	OIDC
	keys *jwks.Set
}

func newTokens(config OIDC) (*tokens, error) {
	if (config.Issuer == "") != (config.Keys == "") {
		return nil, errors.New("issuer and keys go together: give the address of the keys of this issuer, or leave both out for Google")
	}
	if config.Issuer == "" {
		config.Issuer, config.Keys = googleIssuer, googleKeys
	}
	if strings.TrimSpace(config.Audience) == "" {
		return nil, errors.New("audience is missing: give the one of the subscription, the trigger or the job, since a token for any other service would be accepted without it")
	}
	if n := len(config.ServiceAccounts); n == 0 || n > maxSecrets {
		return nil, fmt.Errorf("there are %d service_accounts: give the e-mails of 1 to %d, since everybody can have Google make a token for your audience", n, maxSecrets)
	}
	for i, email := range config.ServiceAccounts {
		switch {
		case !strings.Contains(email, "@") || strings.ContainsAny(email, " \t\n"):
			return nil, fmt.Errorf("service account %q is no e-mail: write it like push@my-project.iam.gserviceaccount.com", email)
		case slices.Contains(config.ServiceAccounts[:i], email):
			return nil, fmt.Errorf("service account %s is there twice: remove one of the two", email)
		}
	}
	keys, err := jwks.New(config.Keys)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	config.ServiceAccounts = slices.Clone(config.ServiceAccounts)
	return &tokens{config, keys}, nil
}

// claims are what a token says.
type claims struct {
	jwt.RegisteredClaims
	Email         string `json:"email"`
	EmailVerified bool   `json:"email_verified"`
}

// check refuses a request without a token that the source accepts. It blocks while the keys of the issuer are asked for.
func (t *tokens) check(r *Request) error {
	text, err := header(r, "Authorization")
	if err != nil {
		return err
	}
	kind, token, _ := strings.Cut(text, " ")
	if !strings.EqualFold(kind, "Bearer") || token == "" {
		return errors.New("the header Authorization holds no token: have the sender authenticate with an OIDC token")
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return r.Received }))
	var said claims
	var refused error // by this function, in words of its own
	_, err = parser.ParseWithClaims(token, &said, func(parsed *jwt.Token) (any, error) {
		// What a token says costs nothing to judge, and the keys of its issuer may have to be asked for.
		if refused = t.judge(&said); refused != nil {
			return nil, refused
		}
		id, _ := parsed.Header["kid"].(string) // an id that is no text is one of no key
		key, err := t.keys.Key(id, r.Received)
		switch {
		case errors.Is(err, jwks.ErrUnavailable):
			refused = fmt.Errorf("%w: %w", ErrUnavailable, err)
		case err != nil:
			refused = fmt.Errorf("the token is signed with the key %q: %w", short(id), err)
		}
		return key, refused
	})
	switch {
	case err == nil:
		return nil
	case refused != nil:
		return refused
	case errors.Is(err, jwt.ErrTokenExpired):
		return timeError("the token has expired: compare the clocks if it was new")
	default:
		return fmt.Errorf("the token is not valid: %s", short(err.Error()))
	}
}

// judge says what of a token is not as the source demands. Its times are the parser's to judge.
func (t *tokens) judge(said *claims) error {
	ofIssuer := said.Issuer == t.Issuer || t.Issuer == googleIssuer && "https://"+said.Issuer == googleIssuer
	switch {
	case !ofIssuer:
		return fmt.Errorf("the token is of the issuer %q: it must be %s", short(said.Issuer), t.Issuer)
	case !slices.Contains(said.Audience, t.Audience):
		return fmt.Errorf("the token is for the audience %q: it must be %s", short(strings.Join(said.Audience, " ")), t.Audience)
	case !said.EmailVerified || !slices.Contains(t.ServiceAccounts, said.Email):
		return fmt.Errorf("the token is of %q (verified: %t), which is none of service_accounts", short(said.Email), said.EmailVerified)
	default:
		return nil
	}
}
