package migrations_test

import (
	"testing"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// TestUpGrantsNewCheckToSQLEmitters: where functions are not executable by PUBLIC, those who could emit in SQL before an upgrade
// still can, without another run of the script of the roles.
func TestUpGrantsNewCheckToSQLEmitters(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
	if _, err := migrations.Down(ctx, url, int(migrations.Latest())-16); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	if _, err := conn.Exec(ctx, `ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
		REVOKE EXECUTE ON FUNCTION events_mistake_in_keys FROM PUBLIC; GRANT EXECUTE ON FUNCTION events_mistake_in_keys TO pg_monitor`); err != nil {
		t.Fatal(err)
	}
	up(t, url)
	for role, want := range map[string]bool{"pg_monitor": true, "pg_signal_backend": false} {
		var may bool
		if err := conn.QueryRow(ctx, `SELECT has_function_privilege($1, 'events_mistake_in_arguments'::regproc, 'EXECUTE')`, role).Scan(&may); err != nil || may != want {
			t.Errorf("%s may call the new function: %v, %v, want %v", role, may, err, want)
		}
	}
}
