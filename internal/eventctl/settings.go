package eventctl

import (
	"context"
	"fmt"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
	"eventsv2/internal/view"
)

// settingsDoc are the settings of the database.
type settingsDoc struct {
	LockTimeout view.Seconds `json:"lock_timeout_seconds"`
	// Before is the lock timeout before a change that is not final yet.
	Before view.Seconds `json:"lock_timeout_before_seconds,omitempty"`
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
		doc := settingsDoc{view.Seconds(s.LockTimeout.Seconds()), view.Seconds(s.LockTimeoutBefore.Seconds()), s.Set}
		return p.writeLine(doc, doc.text())
	})
}

func (d settingsDoc) text() string {
	switch timeout := d.LockTimeout.Duration(); {
	case !d.Set:
		return fmt.Sprintf("lock timeout: %s (the default; no program has set it yet)", timeout)
	case d.Before > 0:
		return fmt.Sprintf("lock timeout: %s, before that %s: a lock is valid for the longer one until eventctl settings finalize", timeout, d.Before.Duration())
	default:
		return fmt.Sprintf("lock timeout: %s", timeout)
	}
}
