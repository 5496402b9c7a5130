package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgsession"
)

// Prefix begins every token, so that people and secret scanners recognize one.
const Prefix = "evt_"

// secretBytes is how much of a token is random.
const secretBytes = 32

// maxNameBytes is how long the name of a token may be.
const maxNameBytes = 100

// Token is a token as the database has it: without its secret.
type Token struct {
	ID   uuid.UUID
	Name string
	Grant
	CreatedAt time.Time
	CreatedBy string
	// CreatedByToken is the token whose holder made it, with which it is revoked; nil if it was not made with a token.
	CreatedByToken *uuid.UUID
	// Origin is the first in the chain of makers of the token, as Identity.Key; "" for one that was made with the
	// database at hand.
	Origin string
	// ExpiresAt is nil for a token that does not end by itself.
	ExpiresAt *time.Time
	// RevokedAt is nil for a token that was not revoked.
	RevokedAt *time.Time
	// AsOf is the database's clock.
	AsOf time.Time
}

// Valid reports whether the token is valid as of AsOf.
func (t Token) Valid() bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || t.ExpiresAt.After(t.AsOf))
}

// NewToken is a token to be created.
type NewToken struct {
	// Name is for people and the audit log; several tokens may have it.
	Name string
	Grant
	// For is how long the token is valid; 0 is until it is revoked.
	For time.Duration
}

// Validate names the first invalid field.
func (n NewToken) Validate() error {
	switch {
	case n.Name == "":
		return errors.New("name: is missing: say what the token is for")
	case len(n.Name) > maxNameBytes:
		return fmt.Errorf("name: is %d bytes long: the limit is %d", len(n.Name), maxNameBytes)
	case strings.ContainsFunc(n.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return fmt.Errorf("name: %q has a character that cannot be seen, or that only controls", n.Name)
	case n.For < 0:
		return fmt.Errorf("for: %s is negative", n.For)
	default:
		return n.Grant.Validate()
	}
}

// ErrRefused is returned for invalid credentials: unknown, expired or revoked. Which of them is
// not said.
var ErrRefused = errors.New("the credentials are not valid: they are unknown, have expired, or were revoked")

// Tokens are the tokens of one database. It is safe for concurrent use.
type Tokens struct{ pool *pgsession.Pool }

// NewTokens makes Tokens for the queue in a schema, on a pool, which the caller closes.
func NewTokens(schema pgsession.Schema, pool *pgxpool.Pool) *Tokens {
	return &Tokens{pool: pgsession.On(pool, schema)}
}

// What is NULL in a list is left out, so that a row that SQL wrote takes no other away.
const tokenColumns = `id, name, CASE WHEN canvases IS NOT NULL THEN ARRAY(SELECT c FROM unnest(canvases) AS c WHERE c IS NOT NULL) END,
    ARRAY(SELECT v FROM unnest(verbs) AS v WHERE v IS NOT NULL), created_at, created_by, created_by_token, coalesce(origin, ''), expires_at, revoked_at, clock_timestamp()`

const createTokenSQL = `
INSERT INTO access_tokens (id, name, hash, canvases, verbs, created_by, expires_at, created_by_token, origin)
VALUES ($1, $2, $3, $4, $5, $6, least(clock_timestamp() + $7::interval, $8), $9, nullif($10, ''))
RETURNING ` + tokenColumns

// Create creates a token and returns it with its secret, which nobody can read later. It is written with its
// row in the audit log.
func (t *Tokens) Create(ctx context.Context, by audit.Actor, n NewToken) (token Token, secret string, err error) {
	if err := n.Validate(); err != nil {
		return token, "", fmt.Errorf("create a token: %w", err)
	}
	secret = newSecret()
	err = t.pool.InTx(ctx, func(tx pgsession.DB) error {
		token, err = create(ctx, tx, by, n, secret, source{})
		return err
	})
	if err != nil {
		return Token{}, "", fmt.Errorf("create a token: %w", err)
	}
	return token, secret, nil
}

// Others that create or revoke tokens wait until the lock is released; those that ask whether a token is valid do not.
const lockTokensSQL = `LOCK TABLE access_tokens IN SHARE ROW EXCLUSIVE MODE`

const validByNameSQL = `
SELECT ` + tokenColumns + `
FROM access_tokens
WHERE name = $1 AND origin IS NULL AND ` + validSQL + `
ORDER BY created_at, id
LIMIT 1`

// CreateUnlessExists is Create if no token of that name is valid that was made by Create as well. Otherwise it changes nothing, and
// returns the oldest valid one and "" for its secret, whatever its verbs, canvases and end are. Of calls at once, one creates the token.
func (t *Tokens) CreateUnlessExists(ctx context.Context, by audit.Actor, n NewToken) (token Token, secret string, err error) {
	if err := n.Validate(); err != nil {
		return token, "", fmt.Errorf("create a token: %w", err)
	}
	err = t.pool.InTx(ctx, func(tx pgsession.DB) error {
		if _, err := tx.Exec(ctx, lockTokensSQL); err != nil {
			return err
		}
		switch existing, err := one(ctx, tx, validByNameSQL, n.Name); {
		case err != nil:
			return err
		case existing != nil:
			token, secret = *existing, ""
			return nil
		}
		secret = newSecret()
		token, err = create(ctx, tx, by, n, secret, source{})
		return err
	})
	if err != nil {
		return Token{}, "", fmt.Errorf("create a token: %w", err)
	}
	return token, secret, nil
}

// newSecret draws a secret.
func newSecret() string {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails
	return Prefix + base64.RawURLEncoding.EncodeToString(random)
}

// source is where a token comes from: the zero one has the database at hand.
type source struct {
	token  *uuid.UUID // of the maker; nil: they have none
	origin string
	ends   *time.Time // before which the token ends; nil: never
}

// create writes a token and its row in the audit log.
func create(ctx context.Context, tx pgsession.DB, by audit.Actor, n NewToken, secret string, from source) (token Token, err error) {
	var lasts *time.Duration
	if n.For > 0 {
		lasts = &n.For
	}
	rows, err := tx.Query(ctx, createTokenSQL, [16]byte(uuid.New()), n.Name, hashOf(secret), canvasArray(n.Canvases), n.Verbs, by.Name, lasts, from.ends, (*[16]byte)(from.token), from.origin)
	if err != nil {
		return token, err
	}
	if token, err = pgx.CollectExactlyOneRow(rows, scanToken); err != nil {
		return token, err
	}
	after, err := json.Marshal(documentOf(token))
	if err != nil {
		return token, err
	}
	return token, audit.Write(ctx, tx, by, audit.Change{Action: "create_token", Canvas: onlyCanvas(token.Grant), Target: targetOf(token), After: after})
}

const listTokensSQL = `
SELECT ` + tokenColumns + `
FROM access_tokens
ORDER BY created_at, id`

// List returns all tokens, revoked and expired ones as well, by the time of their creation.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	list, err := collect(ctx, t.pool, listTokensSQL)
	if err != nil {
		return nil, fmt.Errorf("list the tokens: %w", err)
	}
	return list, nil
}

const getTokenSQL = `SELECT ` + tokenColumns + ` FROM access_tokens WHERE id = $1`

// Get returns a token, or nil if there is none.
func (t *Tokens) Get(ctx context.Context, id uuid.UUID) (*Token, error) {
	return one(ctx, t.pool, getTokenSQL, [16]byte(id))
}

const validSQL = `revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`

const identifySQL = `
SELECT ` + tokenColumns + `
FROM access_tokens
WHERE hash = $1 AND ` + validSQL

// Identify returns the identity of a secret. The error is ErrRefused if there is none. It blocks for one statement,
// or for none if the secret cannot be a token.
func (t *Tokens) Identify(ctx context.Context, secret string) (Identity, error) {
	return t.identify(ctx, identifySQL, secret)
}

// identify is Identify by a statement whose first argument is the hash of the secret.
func (t *Tokens) identify(ctx context.Context, sql, secret string, args ...any) (Identity, error) {
	if !wellFormed(secret) {
		return Identity{}, ErrRefused
	}
	token, err := one(ctx, t.pool, sql, append([]any{hashOf(secret)}, args...)...)
	if err != nil {
		return Identity{}, fmt.Errorf("find the token: %w", err)
	}
	if token == nil {
		return Identity{}, ErrRefused
	}
	identity := Identity{Name: "token:" + token.Name, Grants: []Grant{token.Grant}, Key: tokenKey + token.ID.String()}
	if token.ExpiresAt != nil {
		identity.EndsIn = max(token.ExpiresAt.Sub(token.AsOf), 1)
	}
	return identity, nil
}

// Any reports whether a token was ever made, also one that has expired or was revoked: a door that was
// closed does not open by itself.
func (t *Tokens) Any(ctx context.Context) (has bool, err error) {
	if err = t.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM access_tokens)`).Scan(&has); err != nil {
		return false, fmt.Errorf("query the tokens: %w", err)
	}
	return has, nil
}

func wellFormed(secret string) bool {
	random, found := strings.CutPrefix(secret, Prefix)
	if !found {
		return false
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(random)
	return err == nil && len(decoded) == secretBytes
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func canvasArray(canvases []eventqueue.CanvasID) (out [][16]byte) {
	for _, canvas := range canvases {
		out = append(out, [16]byte(canvas))
	}
	return out
}

func scanToken(row pgx.CollectableRow) (t Token, err error) {
	var canvases [][16]byte
	var maker *[16]byte
	err = row.Scan((*[16]byte)(&t.ID), &t.Name, &canvases, &t.Verbs, &t.CreatedAt, &t.CreatedBy, &maker, &t.Origin, &t.ExpiresAt, &t.RevokedAt, &t.AsOf)
	if canvases != nil {
		t.Canvases = make([]eventqueue.CanvasID, 0, len(canvases)) // nil would be all
	}
	for _, canvas := range canvases {
		t.Canvases = append(t.Canvases, canvas)
	}
	t.CreatedByToken = (*uuid.UUID)(maker)
	return t, err
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect reads all rows.
func collect(ctx context.Context, db querier, sql string, args ...any) ([]Token, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanToken)
}

// one reads one row, or none.
func one(ctx context.Context, db querier, sql string, args ...any) (*Token, error) {
	found, err := collect(ctx, db, sql, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// onlyCanvas is the canvas in whose audit log a change of a token is.
func onlyCanvas(g Grant) *eventqueue.CanvasID {
	if len(g.Canvases) == 1 {
		return &g.Canvases[0]
	}
	return nil
}

func targetOf(t Token) any { return map[string]string{"token": t.ID.String(), "name": t.Name} }

// documentOf is a token in the audit log.
func documentOf(t Token) any {
	return struct {
		Canvases  []eventqueue.CanvasID `json:"canvases"` // null for all
		Verbs     []Verb                `json:"verbs"`
		ExpiresAt *time.Time            `json:"expires_at"`
		RevokedAt *time.Time            `json:"revoked_at"`
	}{t.Canvases, t.Verbs, t.ExpiresAt, t.RevokedAt}
}
