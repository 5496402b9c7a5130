package rig

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/queuetest"
	"eventsv2/test/testenv"
)

// InBubble runs a test in virtual time (testing/synctest), with a database of its own in which time is the same.
func InBubble(t *testing.T, test func(t *testing.T, pool *pgxpool.Pool)) {
	t.Helper()
	url := testenv.DatabaseURL(t)
	synctest.Test(t, func(t *testing.T) { test(t, queuetest.Pool(t, url)) })
}

// Virtual runs a test of a Rig in virtual time.
func Virtual(t *testing.T, test func(t *testing.T, r *Rig)) {
	t.Helper()
	InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		r := NewOn(t, pool)
		r.virtual = true
		t.Cleanup(func() {
			if err := r.Queue.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		test(t, r)
	})
}

// Pass lets virtual time pass, and everything happen that follows.
func Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Scalar returns the only value of a query.
func Scalar[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}
