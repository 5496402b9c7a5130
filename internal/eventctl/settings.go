package eventctl

import (
	"context"
	"fmt"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
)

// settingsDoc are the settings of the database.
type settingsDoc struct {
	LockTimeout string `json:"lock_timeout"`
	// Before is the lock timeout before a change that is not final yet.
	Before string `json:"lock_timeout_before,omitempty"`
	// Set is false while LockTimeout is the default, which the first program that
	// starts may replace.
	Set bool `json:"set"`
}

// withSettings calls do, and writes the settings that are valid after it.
func (p *program) withSettings(ctx context.Context, do func(store *pgstore.Store) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, _ setup.Config) error {
		if err := do(store.As(actor(store))); err != nil {
			return failed(err)
		}
		s, err := store.Settings(ctx)
		if err != nil {
			return failed(err)
		}
		doc := settingsDoc{LockTimeout: s.LockTimeout.String(), Set: s.Set}
		if s.LockTimeoutBefore > 0 {
			doc.Before = s.LockTimeoutBefore.String()
		}
		return p.writeLine(doc, doc.text())
	})
}

func (d settingsDoc) text() string {
	switch {
	case !d.Set:
		return "lock timeout: " + d.LockTimeout + " (the default; no program has set it yet)"
	case d.Before != "":
		return fmt.Sprintf("lock timeout: %s, before that %s: a lock is valid for the longer one until eventctl settings finalize", d.LockTimeout, d.Before)
	default:
		return "lock timeout: " + d.LockTimeout
	}
}
