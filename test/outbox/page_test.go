package outbox

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// blocks returns the examples of the page in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/outbox.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("the page has no example in %s", language)
	}
	return found
}

// TestDocumentedSQLRuns takes all SQL of docs/outbox.md in its order; the role and
// the database shop are the test's own.
func TestDocumentedSQLRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.conn()
	r.exec(conn, `CREATE TABLE orders (cart int); CREATE TABLE person (id bigint GENERATED ALWAYS AS IDENTITY, tenant_id uuid, name text)`)
	database := one[string](r, conn, `SELECT quote_ident(current_database())`)
	for _, sql := range blocks(t, "sql") {
		r.exec(conn, strings.NewReplacer("TO shop", "TO CURRENT_USER", "DATABASE shop", "DATABASE "+database).Replace(sql))
	}
	r.wants(conn, `WORKER/order_placed/_ {"cart": 17}`, `WORKER/remind/_ {"cart": 17}`, `WORKER/order_placed/_ {"cart": 17}`, `WORKER/rebuild_index/_ {"part": 3}`,
		`WORKER/order_placed/_ {"cart": 18}`)
	r.exec(conn, `INSERT INTO person (tenant_id, name) VALUES ('`+tenant+`', 'john')`)
	r.exec(conn, `UPDATE person SET name = 'alice'`)
	john, alice := `{"id":1,"tenant_id":"T","name":"john"}`, `{"id":1,"tenant_id":"T","name":"alice"}`
	r.wants(conn, `WORKER/insert_person/_ `+john,
		`WORKER/update_person/renamed {"operation" : "UPDATE", "schema" : "public", "table" : "person", "old" : `+john+`, "new" : `+alice+`}`,
		`SEARCH/update_person/_ `+alice, `WORKER/update_person/_ `+alice)
}

// TestDocumentedGoIsTheExample and does what it says.
func TestDocumentedGoIsTheExample(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range blocks(t, "go") {
		if !strings.Contains(string(example), code) {
			t.Errorf("example_test.go lacks this code of the page:\n%s", code)
		}
	}
	r := newRig(t)
	conn := r.conn()
	ctx := testenv.Context(t)
	if _, err := placeOrder(ctx, conn, tenant, 17); err == nil {
		t.Error("placed an order without a table for it")
	}
	r.exec(conn, `CREATE TABLE orders (cart int)`)
	if id, err := placeOrder(ctx, conn, tenant, 17); err != nil || id <= 0 {
		t.Errorf("placed as %d, %v", id, err)
	}
	r.wants(conn, `WORKER/order_placed/_ {"cart":17}`)
}
