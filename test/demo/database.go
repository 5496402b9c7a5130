package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/migrations"
	"eventsv2/test/services"
)

// createDatabase makes a database for this demo alone on the server of the URL, applies the
// schema and returns the new database's URL. drop closes its connections and removes it;
// with an error drop is nil.
func createDatabase(ctx context.Context, clusterURL string) (databaseURL string, drop func(context.Context) error, err error) {
	name := fmt.Sprintf("eventsv2_demo_%d_%s", os.Getpid(), strings.ToLower(rand.Text()[:10]))
	if databaseURL, err = services.WithDatabase(clusterURL, name); err != nil {
		return "", nil, err
	}
	quoted := pgx.Identifier{name}.Sanitize()
	if err := execute(ctx, clusterURL, "CREATE DATABASE "+quoted); err != nil {
		return "", nil, fmt.Errorf("make a database for the demo: %w", err)
	}
	drop = func(ctx context.Context) error {
		if err := execute(ctx, clusterURL, "DROP DATABASE IF EXISTS "+quoted+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop the demo's database %s: %w", name, err)
		}
		return nil
	}
	if _, err := migrations.Up(ctx, databaseURL); err != nil {
		return "", nil, errors.Join(err, drop(context.WithoutCancel(ctx)))
	}
	return databaseURL, drop, nil
}

func execute(ctx context.Context, databaseURL, sql string) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// counts is the progress of the queue.
type counts struct {
	waiting int // rows of events_v2
	ended   int // rows of event_log
}

const countSQL = `
SELECT (SELECT count(*) FROM events_v2), (SELECT count(*) FROM event_log)`

func countEvents(ctx context.Context, pool *pgxpool.Pool) (c counts, err error) {
	if err := pool.QueryRow(ctx, countSQL).Scan(&c.waiting, &c.ended); err != nil {
		return c, fmt.Errorf("count the events: %w", err)
	}
	return c, nil
}

const countEndedSQL = `
SELECT count(*)
  FROM event_log
 WHERE id = ANY ($1::bigint[])`

// countEnded counts those of the events that have ended.
func countEnded(ctx context.Context, pool *pgxpool.Pool, ids []eventqueue.EventID) (n int, err error) {
	if err := pool.QueryRow(ctx, countEndedSQL, ids).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the events that have ended: %w", err)
	}
	return n, nil
}

// ending is a row of event_log.
type ending struct {
	status string
	digest digest // of the value
}

// digest is the SHA-256 of a value.
type digest [sha256.Size]byte

const endingsSQL = `
SELECT id, status::text, sha256(convert_to(value, 'UTF8'))
  FROM event_log`

func endings(ctx context.Context, pool *pgxpool.Pool) (map[eventqueue.EventID]ending, error) {
	rows, err := pool.Query(ctx, endingsSQL)
	if err != nil {
		return nil, fmt.Errorf("read event_log: %w", err)
	}
	ended := make(map[eventqueue.EventID]ending)
	var (
		id     eventqueue.EventID
		status string
		sum    []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &status, &sum}, func() error {
		ended[id] = ending{status, digest(sum)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read event_log: %w", err)
	}
	return ended, nil
}
