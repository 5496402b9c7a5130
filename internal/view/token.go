package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"eventsv2/access"
	"eventsv2/eventqueue"
)

// Token is a token without its secret.
type Token struct {
	ID        uuid.UUID             `json:"id" format:"uuid"`
	Name      string                `json:"name"`
	Verbs     []access.Verb         `json:"verbs" nullable:"false"`
	Canvases  []eventqueue.CanvasID `json:"canvases,omitempty" doc:"Absent: all."`
	CreatedAt time.Time             `json:"created_at"`
	CreatedBy string                `json:"created_by"`
	MadeBy    *uuid.UUID            `json:"created_by_token,omitempty" format:"uuid" doc:"The token whose holder made it: it is revoked with that one."`
	ExpiresAt *time.Time            `json:"expires_at,omitempty"`
	RevokedAt *time.Time            `json:"revoked_at,omitempty"`

	AsOf time.Time `json:"-"`
	// Valid reports whether the token was accepted at AsOf.
	Valid bool `json:"-"`
}

// CreatedToken is a token that was just made, with its secret.
type CreatedToken struct {
	Token
	Secret string `json:"token,omitempty" doc:"Shown this once: the database has only its hash. Absent: there was such a token, and none was made."`
}

// TokenOf is a token.
func TokenOf(t access.Token) Token {
	verbs := t.Verbs
	if verbs == nil {
		verbs = []access.Verb{}
	}
	return Token{t.ID, t.Name, verbs, t.Canvases, t.CreatedAt.UTC(), t.CreatedBy, t.CreatedByToken, utc(t.ExpiresAt), utc(t.RevokedAt), t.AsOf, t.Valid()}
}

// VerbsText lists what the token may do.
func (t Token) VerbsText() string {
	return strings.Join(All(t.Verbs, func(v access.Verb) string { return string(v) }), ", ")
}

// CanvasesText is the canvas that the token is for, or how many they are.
func (t Token) CanvasesText() string {
	switch len(t.Canvases) {
	case 0:
		return "all"
	case 1:
		return t.Canvases[0].String()
	default:
		return fmt.Sprintf("%d canvases", len(t.Canvases))
	}
}

// Created is how long ago the token was made.
func (t Token) Created() string { return when(&t.CreatedAt, t.AsOf) }

// State is whether the token is valid.
func (t Token) State() string {
	switch {
	case t.RevokedAt != nil:
		return "revoked"
	case !t.Valid:
		return "expired"
	default:
		return "valid"
	}
}

// StateAndTime is State with the time since when, or until when, it is so.
func (t Token) StateAndTime() string {
	switch {
	case t.RevokedAt != nil:
		return "revoked " + when(t.RevokedAt, t.AsOf)
	case t.ExpiresAt == nil:
		return "valid"
	case !t.Valid:
		return "expired " + when(t.ExpiresAt, t.AsOf)
	default:
		return "until " + when(t.ExpiresAt, t.AsOf)
	}
}
