package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// MinSessionKeyBytes is how long the key of Sessions has to be at least.
const MinSessionKeyBytes = 32

// sessionPurpose binds what is sealed to its use.
const sessionPurpose = "eventsv2 session 2"

// maxSessionBytes is how long a session may be as a text.
const maxSessionBytes = 512

// Sessions turn tokens into sessions, which a browser keeps in a cookie for a bounded time. A session is an id, the
// token and an end, encrypted: only the ids of sessions that were logged out are stored. It is worth nothing after its
// end, after a log-out, and after the end of its token. It is safe for concurrent use.
type Sessions struct {
	tokens *Tokens
	seal   cipher.AEAD
	lasts  time.Duration
}

// NewSessions makes Sessions that last so long. Programs that share a key accept each other's sessions;
// without one (nil), sessions end with the program that began them.
func NewSessions(tokens *Tokens, key []byte, lasts time.Duration) (*Sessions, error) {
	switch {
	case tokens == nil:
		return nil, errors.New("access.NewSessions: tokens must not be nil")
	case lasts <= 0:
		return nil, fmt.Errorf("access.NewSessions: %s is not how long a session lasts: it must be positive", lasts)
	case key == nil:
		key = make([]byte, MinSessionKeyBytes)
		_, _ = rand.Read(key) // never fails
	case len(key) < MinSessionKeyBytes:
		return nil, fmt.Errorf("access.NewSessions: the key is %d bytes long: it needs at least %d random ones", len(key), MinSessionKeyBytes)
	}
	sum := sha256.Sum256(key)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Sessions{tokens, seal, lasts}, nil
}

// Begin returns a session for the secret of a token. The error is ErrRefused if the token is not valid. It
// blocks for one statement.
func (s *Sessions) Begin(ctx context.Context, secret string) (session string, who Identity, err error) {
	if who, err = s.tokens.Identify(ctx, secret); err != nil {
		return "", Identity{}, err
	}
	noteIdentity(ctx, who, true)
	id := uuid.New()
	content := binary.BigEndian.AppendUint64(id[:], uint64(time.Now().Add(s.lasts).UnixNano())) //nolint:gosec // of this century
	sealed := s.seal.Seal(nil, nil, append(content, secret...), []byte(sessionPurpose))
	return base64.RawURLEncoding.EncodeToString(sealed), who, nil
}

const identifySessionSQL = identifySQL + ` AND NOT EXISTS (SELECT FROM ended_sessions s WHERE s.id = $2)`

// Identify returns who has a session. The error is ErrRefused if it has ended or was logged out, if its token was
// revoked or has expired, or if it is none. It blocks for one statement.
func (s *Sessions) Identify(ctx context.Context, session string) (Identity, error) {
	is := s.open(session)
	if !is.lasts() {
		return Identity{}, ErrRefused
	}
	who, err := s.tokens.identify(ctx, identifySessionSQL, is.secret, [16]byte(is.id))
	noteIdentity(ctx, who, false)
	return who, err
}

// The clocks of programs may differ by an hour: until then one of them may take the session for one that lasts.
const endSessionSQL = `
WITH over AS (DELETE FROM ended_sessions WHERE ends_at < clock_timestamp() - interval '1 hour')
INSERT INTO ended_sessions (id, token_id, ends_at)
SELECT $2, id, $3 FROM access_tokens WHERE hash = $1
ON CONFLICT (id) DO NOTHING`

// End logs a session out, in every program. One that has ended already, or is none, needs nothing. It blocks for one
// statement.
func (s *Sessions) End(ctx context.Context, session string) error {
	is := s.open(session)
	if !is.lasts() {
		return nil
	}
	if _, err := s.tokens.pool.Exec(ctx, endSessionSQL, hashOf(is.secret), [16]byte(is.id), is.ends); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}

// Key names a session where Tokens.Ended is asked about it.
func (s *Sessions) Key(session string) string { return sessionKey + s.open(session).id.String() }

// Lasts returns for how long a session lasts from now, if its token does; 0 or less for one that has ended or is none.
func (s *Sessions) Lasts(session string) time.Duration { return time.Until(s.open(session).ends) }

// opened is the content of a session; the zero value is no session.
type opened struct {
	id     uuid.UUID
	ends   time.Time
	secret string // of the token that it was begun with
}

func (o opened) lasts() bool { return time.Now().Before(o.ends) }

func (s *Sessions) open(session string) (none opened) {
	if len(session) > maxSessionBytes {
		return none
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(session)
	if err != nil {
		return none
	}
	content, err := s.seal.Open(nil, nil, sealed, []byte(sessionPurpose))
	if err != nil {
		return none
	}
	id, rest := uuid.UUID(content[:16]), content[16:]
	ends := time.Unix(0, int64(binary.BigEndian.Uint64(rest))) //nolint:gosec // it was one before
	return opened{id, ends, string(rest[8:])}
}
