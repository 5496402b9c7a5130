package testenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/migrations"
	"eventsv2/test/services"
)

// templateLock is the key of the advisory lock under which a template is made.
// The number means nothing; it only must not change.
const templateLock int64 = 0x65763274656d70

// emptyTemplate is Postgres' own template that nobody connects to.
const emptyTemplate = "template0"

// templateName is the name of the template for this binary's migrations.
func templateName() string {
	sum := sha256.Sum256([]byte(migrations.SQL()))
	return "eventsv2_template_" + hex.EncodeToString(sum[:8])
}

// A template is complete when it accepts no connections: that is the last step of
// making it.
const selectTemplate = `
SELECT datallowconn
  FROM pg_database
 WHERE datname = $1`

// ensureTemplate makes the template unless it is complete. It may be called from
// any number of processes at once. The lock belongs to the session that takes
// it, so it is gone with a process that dies.
//
// It has the queue in public, and in each of the schemas as well.
func ensureTemplate(ctx context.Context, admin *pgxpool.Pool, clusterURL, name string, schemas ...string) (err error) {
	conn, err := admin.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect for making the template: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("lock the making of templates: %w", err)
	}
	defer func() {
		_, unlockErr := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", templateLock)
		err = errors.Join(err, unlockErr)
	}()

	var unfinished bool
	switch err := conn.QueryRow(ctx, selectTemplate, name).Scan(&unfinished); {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return fmt.Errorf("look for template %s: %w", name, err)
	case !unfinished:
		return nil
	default:
		if err := dropDatabase(ctx, conn, name); err != nil {
			return err
		}
	}
	return makeTemplate(ctx, conn, clusterURL, name, schemas)
}

func makeTemplate(ctx context.Context, conn executor, clusterURL, name string, schemas []string) error {
	if err := createDatabase(ctx, conn, name, emptyTemplate); err != nil {
		return err
	}
	databaseURL, err := services.WithDatabase(clusterURL, name)
	if err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		return fmt.Errorf("make template %s: %w", name, err)
	}
	for _, schema := range schemas {
		if _, err := migrations.In(pgsession.Schema(schema)).Up(ctx, databaseURL); err != nil {
			return fmt.Errorf("make template %s: %w", name, err)
		}
	}
	if err := know(ctx, databaseURL); err != nil {
		return fmt.Errorf("make template %s: %w", name, err)
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quote(name)+" WITH ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("close template %s: %w", name, err)
	}
	return nil
}

// know connects once, so that Postgres writes down what a new connection needs to know of
// the catalog: the file is copied with the template.
func know(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT count(*) FROM events_v2")
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
