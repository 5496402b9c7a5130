package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// What the keys of credentials begin with: tokenKey Identity.Key of who has a token, and sessionKey that of a session.
const (
	tokenKey   = "token:"
	sessionKey = "session:"
)

const endedSQL = `
SELECT '` + tokenKey + `' || asked.id FROM unnest($1::uuid[]) AS asked (id)
WHERE NOT EXISTS (SELECT FROM access_tokens t WHERE t.id = asked.id AND ` + validSQL + `)
UNION ALL
SELECT '` + sessionKey + `' || id FROM ended_sessions WHERE id = ANY ($2::uuid[])`

// Ended returns those of some keys whose credentials have ended: of Identity.Keys those whose tokens have expired or were
// revoked, and of keys of Sessions those that were logged out. It ignores other keys. It blocks for one statement, or for
// none without such a key.
func (t *Tokens) Ended(ctx context.Context, keys []string) (ended []string, err error) {
	tokens, sessions := idsOf(keys, tokenKey), idsOf(keys, sessionKey)
	if len(tokens)+len(sessions) == 0 {
		return nil, nil
	}
	rows, err := t.pool.Query(ctx, endedSQL, tokens, sessions)
	if err == nil {
		ended, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return nil, fmt.Errorf("find credentials that have ended: %w", err)
	}
	return ended, nil
}

// idsOf returns the ids of those keys that begin so.
func idsOf(keys []string, prefix string) [][16]byte {
	ids := [][16]byte{}
	for _, key := range keys {
		if text, found := strings.CutPrefix(key, prefix); found {
			if id, err := uuid.Parse(text); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
