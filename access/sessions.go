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
)

// MinSessionKeyBytes is how long the key of Sessions has to be at least.
const MinSessionKeyBytes = 32

// sessionPurpose binds what is sealed to its use.
const sessionPurpose = "eventsv2 session 1"

// maxSessionBytes is how long a session may be as a text.
const maxSessionBytes = 512

// Sessions turn tokens into sessions, which a browser keeps in a cookie for a bounded time. A session is the
// token and its end, encrypted: nothing is stored, a session that was stolen is worth nothing after its end, and
// it ends with its token. It is safe for concurrent use.
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

// Begin returns a session for the secret of a token. The error is ErrRefused if the token lets nobody in. It
// blocks for one statement.
func (s *Sessions) Begin(ctx context.Context, secret string) (session string, who Identity, err error) {
	if who, err = s.tokens.Identify(ctx, secret); err != nil {
		return "", Identity{}, err
	}
	ends := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(s.lasts).UnixNano())) //nolint:gosec // of this century
	sealed := s.seal.Seal(nil, nil, append(ends, secret...), []byte(sessionPurpose))
	return base64.RawURLEncoding.EncodeToString(sealed), who, nil
}

// Identify returns who has a session. The error is ErrRefused if it has ended, if its token was revoked or has
// expired, or if it is none. It blocks for one statement.
func (s *Sessions) Identify(ctx context.Context, session string) (Identity, error) {
	secret, lasts := s.open(session)
	if lasts <= 0 {
		return Identity{}, ErrRefused
	}
	return s.tokens.Identify(ctx, secret)
}

// Lasts returns for how long a session lasts from now, if its token does; 0 or less for one that has ended or is none.
func (s *Sessions) Lasts(session string) time.Duration {
	_, lasts := s.open(session)
	return lasts
}

// open returns the secret of a token that a session was begun with, and for how long it lasts.
func (s *Sessions) open(session string) (secret string, lasts time.Duration) {
	if len(session) > maxSessionBytes {
		return "", 0
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(session)
	if err != nil {
		return "", 0
	}
	opened, err := s.seal.Open(nil, nil, sealed, []byte(sessionPurpose))
	if err != nil || len(opened) < 8 {
		return "", 0
	}
	ends := time.Unix(0, int64(binary.BigEndian.Uint64(opened))) //nolint:gosec // it was one before
	return string(opened[8:]), time.Until(ends)
}
