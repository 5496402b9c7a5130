package pgstore

import (
	"context"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue/pgsession"
)

// pinnedPath is the search path of the first connection of a pool. All others get it, so that
// a path that changes on the role or the database leads no part of a running program to other tables.
// It is safe for concurrent use.
type pinnedPath struct {
	mu   sync.Mutex
	path *string
}

// pin returns the settings of a connection with its search path. Those of the database URL win.
func (p *pinnedPath) pin(ctx context.Context, conn *pgconn.PgConn, settings pgsession.Settings) (pgsession.Settings, error) {
	if _, set := settings[searchPath]; set {
		return settings, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path == nil {
		path, err := pgsession.SearchPath(ctx, conn)
		if err != nil {
			return nil, err
		}
		p.path = &path
	}
	settings = maps.Clone(settings)
	settings[searchPath] = *p.path
	return settings, nil
}

const searchPath = "search_path"
