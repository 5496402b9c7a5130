package queuetest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue/queuetest"
	"eventsv2/test/testenv"
)

// ownSQL makes what an application may have beside the queue, gives all but one procedure to a role that is no
// superuser, and one function to an extension.
const ownSQL = `
CREATE TABLE own (id int, at timestamptz DEFAULT now());
CREATE PROCEDURE plain() LANGUAGE sql SET search_path = public AS 'SELECT 1';
CREATE PROCEDURE pathless() LANGUAGE sql SET search_path = '' AS 'SELECT 1';
CREATE FUNCTION of_extension() RETURNS int LANGUAGE sql SET search_path = public AS 'SELECT 1';
CREATE SCHEMA others;
CREATE PROCEDURE others.foreign() LANGUAGE sql SET search_path = public AS 'SELECT 1';
CREATE TABLE others.foreign (id int, at timestamptz DEFAULT now());
DO $$
DECLARE
    one text;
BEGIN
    EXECUTE format('CREATE ROLE %I', 'clock_' || current_database());
    EXECUTE format('ALTER DATABASE %I OWNER TO %I', current_database(), 'clock_' || current_database());
    FOR one IN
        SELECT 'TABLE ' || oid::regclass FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        UNION ALL SELECT 'ROUTINE ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('ALTER %s OWNER TO %I', one, 'clock_' || current_database());
    END LOOP;
END
$$;
ALTER EXTENSION plpgsql ADD FUNCTION of_extension();`

// disownSQL drops the role.
const disownSQL = `
DO $$
BEGIN
    EXECUTE format('REASSIGN OWNED BY %I TO CURRENT_USER', 'clock_' || current_database());
    EXECUTE format('DROP ROLE %I', 'clock_' || current_database());
END
$$`

func TestClockIsGivenToWhatItsRoleOwns(t *testing.T) {
	t.Parallel()
	databaseURL := testenv.DatabaseURL(t)
	ctx := testenv.Context(t)
	admin, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), disownSQL); err != nil {
			t.Error(err)
		}
		_ = admin.Close(context.Background())
	})
	if _, err := admin.Exec(ctx, ownSQL); err != nil {
		t.Fatal(err)
	}
	if _, err := queuetest.Start(ctx, databaseURL+"&role=pg_monitor"); err == nil ||
		!strings.Contains(err.Error(), "connect as that role") {
		t.Errorf("Start as a role that does not own the queue = %v", err)
	}
	clock, err := queuetest.Start(ctx, databaseURL+"&role=clock_"+admin.Config().Database)
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	for object, want := range map[string]string{
		`SELECT proconfig[1] FROM pg_proc WHERE proname = 'plain'`:                                      "search_path=queuetest, pg_catalog, public",
		`SELECT proconfig[1] FROM pg_proc WHERE proname = 'pathless'`:                                   "search_path=queuetest, pg_catalog",
		`SELECT proconfig[1] FROM pg_proc WHERE proname = 'of_extension'`:                               "search_path=public",
		`SELECT proconfig[1] FROM pg_proc WHERE proname = 'foreign'`:                                    "search_path=public",
		`SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'own'::regclass`:            "queuetest.clock_timestamp()",
		`SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'others.foreign'::regclass`: "now()",
	} {
		var got string
		if err := admin.QueryRow(ctx, object).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", object, got, err, want)
		}
	}
}
