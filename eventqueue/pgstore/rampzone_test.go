package pgstore_test

import (
	"testing"

	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/testenv"
)

// TestCronEndsAnOperatorsRamp, with the rights of its role, and in another time zone than theirs: the end
// is audited in the operator's name.
func TestCronEndsAnOperatorsRamp(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Asia/Tokyo", "America/Lima"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			r := newRoleRig(t)
			ctx := testenv.Context(t)
			operator, cron := r.as("operator"), r.as("cron")
			ada := operator.store.As(audit.Actor{Name: "ada", Source: "here", Via: "test"})
			lift := operate.LiftOf(operate.PauseRule, scope)
			lift.Rate = 1
			if _, err := ada.AddRule(ctx, operate.RuleOf(operate.PauseRule, scope)); err != nil {
				t.Fatal(err)
			}
			if _, err := ada.LiftRule(ctx, lift); err != nil {
				t.Fatal(err)
			}
			cron.exec(`SET TIME ZONE '` + zone + `'`)
			released, err := cron.store.As(audit.Actor{Name: "cron", Via: "cron"}).Release(ctx, lift.Type, lift.RuleScope)
			if err != nil || !released.Removed {
				t.Fatalf("%+v, %v", released, err)
			}
			if who := one[string](r.rig, `SELECT actor FROM audit_log ORDER BY id DESC LIMIT 1`); who != "ada" {
				t.Errorf("the end is said to be that of %s", who)
			}
		})
	}
}
