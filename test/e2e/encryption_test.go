package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"eventsv2/test/testenv"
)

// keysetFile writes a key set as an operator would, and returns the id of its key.
func keysetFile(t *testing.T) (file string, id uint32) {
	t.Helper()
	keys, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := insecurecleartextkeyset.Write(keys, keyset.NewJSONWriter(&b)); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, keys.KeysetInfo().GetPrimaryKeyId()
}

// TestEncryptedValueIsReadByItsTargetOnly: an event whose target repeats its value in its errors fails, is retried, edited and
// completes, and no table, command, page, answer, metric or log has its value.
func TestEncryptedValueIsReadByItsTargetOnly(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	file, key := keysetFile(t)
	r.environment["VALUE_KEYSET_FILE"], r.environment["EVENTS_CANVAS"] = file, canvas.String()
	var open atomic.Bool
	value := `{"letter": "` + canary + `"}`
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		if !open.Load() {
			http.Error(w, "cannot read "+value, http.StatusInternalServerError)
		}
	})
	served := map[string]string{"API_LISTEN": "127.0.0.1:0", "DASHBOARD": "true", "OTEL_METRICS_EXPORTER": "prometheus", "RETAIN_HISTORY": "true", "LOG_EVENTS": "all"}
	worker, cron := r.start("worker", served), r.start("cron", served)
	worker.await("the HTTP API listens")
	address := "http://" + regexp.MustCompile(`the HTTP API listens[^\n]*"address":"([^"]+)"`).FindStringSubmatch(worker.text())[1]

	r.eventctl("emit", "--module", "WORKER", "--name", "greet", "--value", value)
	byAPI, err := http.Post(address+"/v1/events", "application/json", strings.NewReader(fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":%s,"delay_seconds":3600}`, canvas, value)))
	if err != nil || byAPI.StatusCode != http.StatusCreated {
		t.Fatal(byAPI, err)
	}
	_ = byAPI.Body.Close()
	r.awaitSQL("the event is FAILED", `SELECT count(*) = 1 FROM event_log WHERE status = 'FAILED'`)
	failed, waits := one[int64](r, `SELECT id FROM event_log`), one[int64](r, `SELECT id FROM events_v2`)

	pages := func(when string) {
		t.Helper()
		for _, path := range []string{"/", "/events", "/events?state=failed", "/failed", "/handlers", "/audit", "/operations", "/v1/events", "/v1/history", "/v1/history/groups", "/v1/audit", "/v1/openapi.json"} {
			status, text := pageAt(t, address+path)
			if strings.Contains(text, canary) || status >= http.StatusInternalServerError {
				t.Errorf("%s: %s answers %d: %s", when, path, status, text)
			}
		}
		for _, id := range []int64{failed, waits} {
			for path, want := range map[string]string{"/events/%d": "encrypted, with key %d", "/events/%d/edit": "", "/v1/events/%d": `"encrypted_with":%d`, "/v1/events/%d/attempts": "", "/v1/events/%d/explain": "", "/v1/events/%d/tree": ""} {
				path = fmt.Sprintf(path, id)
				if strings.Contains(want, "%d") {
					want = fmt.Sprintf(want, key)
				}
				if status, text := pageAt(t, address+path); strings.Contains(text, canary) || !strings.Contains(text, want) || strings.Contains(text, "$encrypted") || status >= http.StatusInternalServerError {
					t.Errorf("%s: %s answers %d, want %q: %s", when, path, status, want, text)
				}
			}
			for _, args := range [][]string{{"show"}, {"show", "--json"}, {"explain"}, {"tree"}} {
				out := r.eventctlSays(append(args, fmt.Sprint(id))...)
				if strings.Contains(out, canary) || args[0] == "show" && !strings.Contains(out, fmt.Sprint(key)) {
					t.Errorf("%s: eventctl %v prints %s", when, args, out)
				}
			}
		}
		for _, args := range [][]string{{"list", "--json"}, {"log", "list", "--json"}, {"log", "groups"}, {"audit", "list", "--json"}, {"stats"}} {
			if out := r.eventctlSays(args...); strings.Contains(out, canary) {
				t.Errorf("%s: eventctl %v prints %s", when, args, out)
			}
		}
	}
	pages("failed")
	open.Store(true)
	r.eventctl("retry", fmt.Sprint(failed))
	r.eventctl("edit", fmt.Sprint(waits), "--delay", "0s", "--attribute", "seen=yes")
	r.awaitSQL("both have completed", `SELECT count(*) = 2 FROM event_log WHERE status = 'COMPLETED'`)
	pages("completed")

	got := r.target.await(t, 5)
	for _, request := range got {
		if request.body != value {
			t.Errorf("the target got %s, want %s", request.body, value)
		}
	}
	requireNoRowWith(r, canary)
	for _, p := range []*program{worker, cron} {
		if _, metrics := p.scrape(); metrics == "" || strings.Contains(metrics, canary) {
			t.Errorf("the metrics of %s are %s", p.name(), metrics)
		}
		if status := p.terminate(); status != 0 || strings.Contains(p.text(), canary) {
			t.Errorf("%s ended with status %d; its log has the value or an error:\n%s", p.name(), status, p.text())
		}
	}
}

// requireNoRowWith reads each row of each table as text.
func requireNoRowWith(r *rig, text string) {
	r.t.Helper()
	rows, err := r.pool.Query(testenv.Context(r.t), `SELECT table_name::text FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = 'public'`)
	if err != nil {
		r.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 5 {
		r.t.Fatal(tables, err)
	}
	for _, table := range tables {
		if n := one[int](r, "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()+" AS r WHERE r::text LIKE '%' || $1 || '%'", text); n != 0 {
			r.t.Errorf("%d rows of %s have the value", n, table)
		}
	}
}

// TestBrokenKeySetEndsAProgramAtItsStart with an error that names the variable and the file, before anything is written.
func TestBrokenKeySetEndsAProgramAtItsStart(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	broken := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(broken, []byte(`{"primaryKeyId": `+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{broken, broken + ".missing"} {
		for _, name := range []string{"worker", "cron"} {
			p := r.start(name, map[string]string{"VALUE_KEYSET_FILE": file})
			if status := p.wait(); status == 0 || !strings.Contains(p.text(), "VALUE_KEYSET_FILE: ") || !strings.Contains(p.text(), file) || strings.Contains(p.text(), canary) {
				t.Errorf("%s ended with status %d:\n%s", name, status, p.text())
			}
		}
	}
	if n := one[int](r, `SELECT count(*) FROM event_workers`); n != 0 {
		t.Errorf("%d workers have begun", n)
	}
	r.environment["VALUE_KEYSET_FILE"], r.environment["EVENTS_CANVAS"] = broken, canvas.String()
	p := r.start("eventctl", nil, "emit", "--module", "WORKER", "--name", "greet", "--value", `"`+canary+`"`)
	if status := p.wait(); status == 0 || !strings.Contains(p.text(), "VALUE_KEYSET_FILE: ") {
		t.Errorf("eventctl emit ended with status %d:\n%s", status, p.text())
	}
	r.eventctl("pause", "--module", "WORKER", "--name", "greet") // what emits nothing needs no key set
	r.environment["ENCRYPT_VALUES"] = "false"
	r.eventctl("emit", "--module", "WORKER", "--name", "greet", "--value", `"in the clear"`)
	if value := one[string](r, `SELECT value FROM events_v2`); value != `"in the clear"` {
		t.Errorf("the value is %s", value)
	}
}
