package view

import (
	"encoding/json"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
)

// AuditRow is a row of the audit log.
type AuditRow struct {
	ID     int64                `json:"id"`
	At     time.Time            `json:"at"`
	Actor  string               `json:"actor"`
	Key    string               `json:"actor_key,omitempty" doc:"Tells apart actors of one name: token: and the id of the token, or oidc: with the issuer and the subject."`
	Source string               `json:"source"`
	Via    string               `json:"via"`
	Action string               `json:"action"`
	Canvas *eventqueue.CanvasID `json:"canvas_id,omitempty" format:"uuid"`
	Target json.RawMessage      `json:"target"`
	Before json.RawMessage      `json:"before,omitempty"`
	After  json.RawMessage      `json:"after,omitempty"`
}

// AuditRowOf is a row of the audit log, without the values of events for a reader who may not see them.
func AuditRowOf(e audit.Entry, mayReadValues bool) AuditRow {
	if !mayReadValues {
		e = e.WithoutValues()
	}
	return AuditRow{e.ID, e.At.UTC(), e.Name, e.Key, e.Source, e.Via, e.Action, e.Canvas, e.Target, e.Before, e.After}
}
