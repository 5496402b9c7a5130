package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
)

// What may be made by one token or login, and by the tokens that it has made: valid tokens at once, and tokens in a day, so that all
// can be revoked at once, and none of them fills the table.
const (
	maxTokensOf     = 100
	maxTokensOfADay = 1000
)

// BeyondMakerError is returned for a token that its maker may not make.
type BeyondMakerError struct{ why string }

// Error says why, and what to change, as the maker may read it.
func (e *BeyondMakerError) Error() string { return e.why }

// Administers reports whether the identity administers all canvases of a grant.
func (i Identity) Administers(g Grant) bool {
	return !i.Exceeds(Grant{Canvases: g.Canvases, Verbs: []Verb{Administer}})
}

// LongestToken returns for how long a token may be valid that the identity makes; 0: until it is revoked.
func (i Identity) LongestToken() time.Duration {
	if i.TokensFor > 0 {
		return i.TokensFor
	}
	return i.EndsIn
}

// passOn returns a token as the identity may make it: with an end, if the identity has one.
func (i Identity) passOn(n NewToken) (NewToken, error) {
	longest := i.LongestToken()
	switch {
	case !i.Administers(n.Grant):
		return n, &BeyondMakerError{"you lack the verb administer on some of these canvases: name those that you administer"}
	case i.Exceeds(n.Grant):
		return n, &BeyondMakerError{"a token cannot do more than who makes it: leave out the verbs that you lack on these canvases"}
	case longest > 0 && n.For > longest:
		return n, &BeyondMakerError{fmt.Sprintf("a token cannot be valid for longer than what its maker came in with: give it at most %s, or no time, and it ends with that",
			longest.Truncate(time.Second))}
	}
	if n.For == 0 {
		n.For = longest
	}
	return n, nil
}

// CreateFor is Create for an identity, on whose behalf by acts. The token can do no more than its maker, and does not outlive
// the credentials of its maker: it ends when they do (or within Identity.TokensFor), also if no time is given, and is revoked with
// the token that its maker has. The error is a *BeyondMakerError for a token that the identity may not make, and ErrRefused if its
// own has ended meanwhile.
func (t *Tokens) CreateFor(ctx context.Context, maker Identity, by audit.Actor, n NewToken) (token Token, secret string, err error) {
	if err = n.Validate(); err == nil {
		n, err = maker.passOn(n)
	}
	if err != nil {
		return token, "", fmt.Errorf("create a token: %w", err)
	}
	secret = newSecret()
	err = t.pool.InTx(ctx, func(tx pgsession.DB) error {
		from, err := sourceOf(ctx, tx, maker)
		if err != nil {
			return err
		}
		token, err = create(ctx, tx, by, n, secret, from)
		return err
	})
	if err != nil {
		return Token{}, "", fmt.Errorf("create a token: %w", err)
	}
	return token, secret, nil
}

const makerSQL = `SELECT ` + tokenColumns + ` FROM access_tokens WHERE id = $1 AND ` + validSQL

const countMadeSQL = `
SELECT count(*) FILTER (WHERE ` + validSQL + `), count(*) FILTER (WHERE created_at > clock_timestamp() - interval '1 day')
FROM access_tokens WHERE origin = $1`

// sourceOf returns where a token comes from that an identity makes. The lock keeps others from making or revoking one meanwhile.
func sourceOf(ctx context.Context, tx pgsession.DB, maker Identity) (from source, err error) {
	if maker.Key == "" {
		return from, nil
	}
	if _, err := tx.Exec(ctx, lockTokensSQL); err != nil {
		return from, err
	}
	from.origin = maker.Key
	if maker.TokensFor == 0 && !maker.ends.IsZero() {
		from.ends = &maker.ends
	}
	if ids := idsOf([]string{maker.Key}, tokenKey); len(ids) > 0 {
		own, err := one(ctx, tx, makerSQL, ids[0])
		switch {
		case err != nil:
			return from, err
		case own == nil:
			return from, ErrRefused
		}
		from.token, from.ends, from.origin = &own.ID, own.ExpiresAt, cmp.Or(own.Origin, maker.Key)
	}
	var valid, ofADay int
	if err := tx.QueryRow(ctx, countMadeSQL, from.origin).Scan(&valid, &ofADay); err != nil {
		return from, err
	}
	if valid >= maxTokensOf || ofADay >= maxTokensOfADay {
		return from, &BeyondMakerError{fmt.Sprintf("what you came in with, and the tokens that were made with it, have made %d tokens that are valid and %d in a day: "+
			"the limits are %d and %d; revoke some, or come again later", valid, ofADay, maxTokensOf, maxTokensOfADay)}
	}
	return from, nil
}

const revokeTokenSQL = `
UPDATE access_tokens SET revoked_at = clock_timestamp()
WHERE id = $1 AND revoked_at IS NULL
RETURNING ` + tokenColumns

const revokeMadeSQL = `
UPDATE access_tokens SET revoked_at = clock_timestamp()
WHERE created_by_token = ANY ($1) AND revoked_at IS NULL
RETURNING ` + tokenColumns

// Revoke revokes a token, from the next request on, with all that its holders have made, and those of these. It returns the token;
// nil if there is none that is not revoked already: then it revokes what that one has made. Each is written with its row in the
// audit log.
func (t *Tokens) Revoke(ctx context.Context, by audit.Actor, id uuid.UUID) (token *Token, err error) {
	err = t.pool.InTx(ctx, func(tx pgsession.DB) error {
		if token, err = one(ctx, tx, revokeTokenSQL, [16]byte(id)); err != nil {
			return err
		}
		if token != nil {
			err = writeRevoked(ctx, tx, by, *token)
		}
		for ids := [][16]byte{[16]byte(id)}; err == nil && len(ids) > 0; {
			ids, err = revokeMade(ctx, tx, by, ids)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revoke the token %s: %w", id, err)
	}
	return token, nil
}

// revokeMade revokes what was made with some tokens, and returns which that were. Each call sees what was committed before it.
func revokeMade(ctx context.Context, tx pgsession.DB, by audit.Actor, makers [][16]byte) (ids [][16]byte, err error) {
	revoked, err := collect(ctx, tx, revokeMadeSQL, makers)
	if err != nil {
		return nil, err
	}
	for _, token := range revoked {
		if err := writeRevoked(ctx, tx, by, token); err != nil {
			return nil, err
		}
		ids = append(ids, token.ID)
	}
	return ids, nil
}

// writeRevoked writes the row of a revoked token in the audit log.
func writeRevoked(ctx context.Context, tx pgsession.DB, by audit.Actor, token Token) error {
	was := token
	was.RevokedAt = nil
	before, err1 := json.Marshal(documentOf(was))
	after, err2 := json.Marshal(documentOf(token))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return audit.Write(ctx, tx, by, audit.Change{Action: "revoke_token", Canvas: onlyCanvas(token.Grant), Target: targetOf(token), Before: before, After: after})
}
