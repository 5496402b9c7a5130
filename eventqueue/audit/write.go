package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
)

// What the log has of events.
const (
	MaxDetailed   = 20
	MaxValueBytes = 8 << 10
)

// MaxNameBytes is how long each text of an Actor may be. What is longer is cut off.
const MaxNameBytes = 255

// Actor is the author of a change.
type Actor struct {
	// Name names the author, such as token:deployments, oidc:ada@example.com or os:ada. Several tokens may have one name.
	Name string
	// Key tells apart actors of one name: token: and the id of the token, or oidc: with the issuer and the subject. It is empty
	// where the name says all.
	Key string
	// Source is from where: an address of the network, or the name of a host.
	Source string
	// Via is by what: such as api, dashboard, eventctl or cron.
	Via string
	// Operation is the change of many events that the change belongs to; the zero uuid for none.
	Operation uuid.UUID
}

// Validate returns an error for an actor that cannot identify the author.
func (a Actor) Validate() error {
	switch {
	case a.Name == "":
		return errors.New("the actor has no name")
	case a.Via == "":
		return errors.New("the actor has no Via: name the program, as in eventctl")
	default:
		return nil
	}
}

// CancelRun is the action of a cancellation of an event that runs, whose worker was asked to end the run.
const CancelRun = "cancel_run"

// Change is an entry of the audit log.
type Change struct {
	// Action is the verb, as in pause, or CancelRun.
	Action string
	// Canvas is the canvas of the changed object; nil if it belongs to none, or to several.
	Canvas *eventqueue.CanvasID
	// Target is the changed object, and is stored as JSON.
	Target any
	// Before and After are JSON; nil where there was or is nothing.
	Before, After json.RawMessage
}

const insertSQL = `
INSERT INTO audit_log (actor, source, via, operation_id, action, canvas_id, target, before, after, actor_key)
VALUES ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8::text::jsonb, $9::text::jsonb, $10)`

// Write writes a row in the transaction of the change. db sends statements with the schema of the
// queue (see pgsession.Schema.On). It blocks for one statement.
func Write(ctx context.Context, db eventqueue.DB, by Actor, change Change) error {
	if err := by.Validate(); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	target, err := json.Marshal(change.Target)
	if err != nil {
		return fmt.Errorf("audit log: target of %s: %w", change.Action, err)
	}
	var operation *[16]byte
	if by.Operation != uuid.Nil {
		operation = (*[16]byte)(&by.Operation)
	}
	_, err = db.Exec(ctx, insertSQL, text(by.Name), text(by.Source), text(by.Via), operation, change.Action, (*[16]byte)(change.Canvas),
		storable(target), optional(change.Before), optional(change.After), text(by.Key))
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

// text is what a column of text takes of a name that a request may have brought.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	for len(s) > MaxNameBytes {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

func optional(document json.RawMessage) *string {
	if document == nil {
		return nil
	}
	return new(storable(document))
}

// storable is a document as jsonb takes it, which has no character U+0000.
func storable(document []byte) string {
	return strings.ReplaceAll(string(document), `\u0000`, `\ufffd`)
}
