package inspect_test

import (
	"strings"
	"testing"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestRuleOfANewerProgramIsShownByItsName, in lists, counts and explanations.
func TestRuleOfANewerProgramIsShownByItsName(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	id, scope := emit(t, store, 1)[0], inspectedScope()
	for _, sql := range []string{
		`ALTER TYPE scheduling_rule_type ADD VALUE 'quarantine'`,
		`INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name) SELECT 'quarantine', canvas_id, module, name FROM events_v2`,
	} {
		if _, err := store.Pool().Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	reader := inspect.New(store.Pool())
	list, _, err := reader.List(ctx, inspect.FilterOf(scope), "", false, 0, 10)
	if err != nil || len(list) != 1 || list[0].State != "quarantine" {
		t.Errorf("it is listed as %+v, %v", list, err)
	}
	stats, err := reader.Stats(ctx, inspect.FilterOf(scope))
	if err != nil || len(stats) != 1 || stats[0].ByState["quarantine"] != 1 || len(stats[0].Rules) != 1 {
		t.Errorf("it is counted as %+v, %v", stats, err)
	}
	explained, err := reader.Explain(ctx, id)
	if err != nil || !strings.Contains(explained.Reasons[0].Why, " quarantine by an admin") {
		t.Errorf("it is explained by %+v, %v", explained.Reasons, err)
	}
}
