package access_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/access"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/test/testenv"
)

// holder is a user with a token.
type holder struct {
	access.Identity
	token  access.Token
	secret string
}

// makers makes tokens by tokens.
type makers struct {
	t      *testing.T
	ctx    context.Context
	tokens *access.Tokens
}

func newMakers(t *testing.T) (makers, *audit.Log) {
	t.Helper()
	pool := testenv.Pool(t)
	return makers{t, testenv.Context(t), access.NewTokens("", pool)}, audit.NewLog("", pool)
}

// first makes a token with the database at hand.
func (m makers) first(lasts time.Duration) holder {
	m.t.Helper()
	token, secret, err := m.tokens.Create(m.ctx, ada, access.NewToken{Name: "first", Grant: access.Grant{Verbs: access.Verbs()}, For: lasts})
	if err != nil {
		m.t.Fatal(err)
	}
	return m.holds(token, secret)
}

func (m makers) holds(token access.Token, secret string) holder {
	m.t.Helper()
	who, err := m.tokens.Identify(m.ctx, secret)
	if err != nil {
		m.t.Fatal(err)
	}
	return holder{who, token, secret}
}

func (m makers) by(maker access.Identity, lasts time.Duration) (access.Token, string, error) {
	return m.tokens.CreateFor(m.ctx, maker, maker.Actor("here", "test"), access.NewToken{Name: "made", Grant: access.Grant{Verbs: access.Verbs()}, For: lasts})
}

func (m makers) child(of holder) holder {
	m.t.Helper()
	token, secret, err := m.by(of.Identity, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.holds(token, secret)
}

func TestTokensEndNoLaterThanTheirMakers(t *testing.T) {
	t.Parallel()
	m, _ := newMakers(t)
	hour := m.first(time.Hour)
	grandchild := m.child(m.child(hour))
	if !grandchild.token.ExpiresAt.Equal(*hour.token.ExpiresAt) {
		t.Errorf("the token ends at %s, and that of the maker of its maker at %s", grandchild.token.ExpiresAt, hour.token.ExpiresAt)
	}
	jwt := access.Identity{Name: "oidc:ada@example.com", Key: "oidc:issuer 7", Grants: []access.Grant{{Verbs: access.Verbs()}}, EndsIn: time.Hour}
	bounded := jwt
	bounded.TokensFor = 48 * time.Hour
	var beyond *access.BeyondMakerError
	for name, c := range map[string]struct {
		maker   access.Identity
		asked   time.Duration
		refused bool
		lasts   time.Duration // 0: until it is revoked
	}{
		"a token":                         {hour.Identity, 10 * time.Minute, false, 10 * time.Minute},
		"a token, for longer":             {hour.Identity, 61 * time.Minute, true, 0},
		"a token without an end":          {m.first(0).Identity, 0, false, 0},
		"a JWT":                           {jwt, 0, false, time.Hour},
		"a JWT, for longer":               {jwt, 90 * 24 * time.Hour, true, 0},
		"a JWT, of which more is allowed": {bounded, 0, false, 48 * time.Hour},
		"a JWT, for less than is allowed": {bounded, 24 * time.Hour, false, 24 * time.Hour},
		"a JWT, for more than is allowed": {bounded, 49 * time.Hour, true, 0},
		"a user of the application":       {access.Identity{Name: "staff", Grants: jwt.Grants}, 0, false, 0},
	} {
		token, _, err := m.by(c.maker, c.asked)
		if c.refused {
			if !errors.As(err, &beyond) || !strings.Contains(err.Error(), "cannot be valid for longer") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.lasts == 0 && token.ExpiresAt != nil, c.lasts > 0 && (token.ExpiresAt == nil || token.ExpiresAt.Sub(token.CreatedAt).Round(time.Minute) != c.lasts):
			t.Errorf("%s: made at %s, it ends at %v, want it to last %s", name, token.CreatedAt, token.ExpiresAt, c.lasts)
		}
	}
}

func TestRevokingATokenRevokesTokensItMade(t *testing.T) {
	t.Parallel()
	m, log := newMakers(t)
	root := m.first(0)
	parent := m.child(root)
	children := []holder{m.child(parent), m.child(parent)}
	grandchild := m.child(children[0])
	if _, err := m.tokens.Revoke(m.ctx, ada, children[1].token.ID); err != nil {
		t.Fatal(err)
	}
	if revoked, err := m.tokens.Revoke(m.ctx, root.Actor("there", "test"), parent.token.ID); err != nil || revoked == nil {
		t.Fatalf("revoked %v: %v", revoked, err)
	}
	for _, ended := range append(children, parent, grandchild) {
		if _, err := m.tokens.Identify(m.ctx, ended.secret); !errors.Is(err, access.ErrRefused) {
			t.Errorf("a token that was made by a revoked one lets in: %v", err)
		}
		if _, _, err := m.by(ended.Identity, 0); !errors.Is(err, access.ErrRefused) {
			t.Errorf("a revoked token makes another: %v", err)
		}
	}
	if _, err := m.tokens.Identify(m.ctx, root.secret); err != nil {
		t.Errorf("the maker of a revoked token is refused: %v", err)
	}
	entries, err := log.List(m.ctx, audit.Filter{Action: "revoke_token", ActorKey: root.Key}, 0, 100)
	if err != nil || len(entries) != 3 {
		t.Errorf("%d tokens were audited as revoked by %s, want 3 (%v)", len(entries), root.Key, err)
	}
}

func TestRevocationReachesTokensBeingMade(t *testing.T) {
	t.Parallel()
	m, _ := newMakers(t)
	for range 20 {
		parent := m.first(0)
		made := make(chan string, 1)
		var group errgroup.Group
		group.Go(func() error {
			defer close(made)
			_, secret, err := m.by(parent.Identity, 0)
			if err == nil {
				made <- secret
			} else if !errors.Is(err, access.ErrRefused) {
				return err
			}
			return nil
		})
		group.Go(func() error {
			_, err := m.tokens.Revoke(m.ctx, ada, parent.token.ID)
			return err
		})
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if secret, is := <-made; is {
			if _, err := m.tokens.Identify(m.ctx, secret); !errors.Is(err, access.ErrRefused) {
				t.Fatalf("a token lets in that was made while its maker's was revoked: %v", err)
			}
		}
	}
}

func TestTokensOfOneOriginAreLimited(t *testing.T) {
	t.Parallel()
	m, _ := newMakers(t)
	root := m.first(0)
	jwt := access.Identity{Name: "oidc:ada@example.com", Key: "oidc:issuer 7", Grants: []access.Grant{{Verbs: access.Verbs()}}}
	for name, maker := range map[string]access.Identity{"a token": root.Identity, "a login": jwt} {
		last := maker
		for n := range 100 { // each by the one before it
			token, secret, err := m.by(last, 0)
			if err != nil {
				t.Fatalf("%s: token %d: %v", name, n, err)
			}
			last = m.holds(token, secret).Identity
		}
		var beyond *access.BeyondMakerError
		for _, by := range []access.Identity{maker, last} {
			if _, _, err := m.by(by, 0); !errors.As(err, &beyond) {
				t.Errorf("%s made 101 with those that it had made: %v", name, err)
			}
		}
	}
	if _, err := m.tokens.Revoke(m.ctx, ada, root.token.ID); err != nil {
		t.Fatal(err)
	}
	list, err := m.tokens.List(m.ctx)
	if err != nil {
		t.Fatal(err)
	}
	valid := map[string]int{}
	for _, token := range list {
		if token.Valid() {
			valid[token.Origin]++
		}
	}
	if valid[""] != 0 || valid[root.Key] != 0 || valid[jwt.Key] != 100 {
		t.Errorf("after a revocation, valid are %v", valid)
	}
}

func TestGrantsNameABoundedNumberOfCanvases(t *testing.T) {
	t.Parallel()
	grant := access.Grant{Verbs: []access.Verb{access.Read}}
	for n := range 1000 {
		grant.Canvases = append(grant.Canvases, eventqueue.CanvasID{1, byte(n >> 8), byte(n)})
	}
	if err := grant.Validate(); err != nil {
		t.Error(err)
	}
	grant.Canvases = append(grant.Canvases, eventqueue.CanvasID{2})
	if err := grant.Validate(); err == nil || !strings.Contains(err.Error(), "there are 1001: the limit is 1000") {
		t.Errorf("1,001 canvases: %v", err)
	}
}

func TestAuditDistinguishesActorsOfTheSameName(t *testing.T) {
	t.Parallel()
	m, log := newMakers(t)
	real, imitation := m.first(0), m.first(0)
	for _, who := range []holder{real, imitation, imitation} {
		m.child(who)
	}
	for key, want := range map[string]int{real.Key: 1, imitation.Key: 2, "token:" + real.token.ID.String(): 1} {
		entries, err := log.List(m.ctx, audit.Filter{Actor: "token:first", ActorKey: key}, 0, 10)
		if err != nil || len(entries) != want || entries[0].Key != key {
			t.Errorf("the log has %+v of %s, want %d (%v)", entries, key, want, err)
		}
	}
	if real.Name != imitation.Name || real.Key == imitation.Key {
		t.Error(fmt.Sprint("the two are ", real.Identity, imitation.Identity))
	}
}
