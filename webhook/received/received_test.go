package received_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

func never(time.Duration) time.Duration { return 0 }

// TestCountsOfTwoProgramsAdd: what two programs count of a source adds up, and the newest refusals of both are retained.
func TestCountsOfTwoProgramsAdd(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	db := pgsession.On(pool, "")
	shop := webhook.Source{Name: "shop", Scheme: "stripe", Canvas: eventqueue.CanvasID{1}}
	other := webhook.Source{Name: "shop", Scheme: "github"}
	one, two := received.NewCounter(db, never, testenv.Logger(t)), received.NewCounter(db, never, testenv.Logger(t))
	one.Declare([]webhook.Source{shop, other})
	for range 3 {
		one.Observe(shop, webhook.Accepted, nil)
	}
	for i := range 14 {
		one.Observe(shop, webhook.BadSignature, fmt.Errorf("refusal %d\x00\n%s", i, strings.Repeat("ü", 300)))
	}
	two.Observe(shop, webhook.Duplicate, nil)
	if err := one.HandIn(ctx); err != nil {
		t.Fatal(err)
	}
	two.Observe(shop, webhook.BadTime, errors.New("the newest"))
	if err := errors.Join(two.HandIn(ctx), one.HandIn(ctx)); err != nil {
		t.Fatal(err)
	}
	sources, err := received.NewReader("", pool).Sources(ctx)
	if err != nil || len(sources) != 2 {
		t.Fatalf("%+v, %v", sources, err)
	}
	all, s := sources[0], sources[1]
	if all.Scheme != "github" || all.ReceivedAt != nil || len(all.Day)+len(all.Refusals) != 0 {
		t.Errorf("a source that received nothing is %+v", all)
	}
	if s.Scheme != "stripe" || s.Canvas != shop.Canvas || s.ReceivedAt == nil || received.Sum(s.Day, false) != 4 || received.Sum(s.Hour, true) != 15 || s.Day[webhook.BadTime] != 1 {
		t.Errorf("the source is %+v", s)
	}
	if len(s.Refusals) != 10 || s.Refusals[0].Reason != "the newest" || !strings.HasPrefix(s.Refusals[1].Reason, "refusal 13  ü") || len(s.Refusals[1].Reason) > 210 {
		t.Errorf("the refusals are %+v", s.Refusals)
	}
}

// TestAProgramThatCountsNothingSendsNothing, and one whose database fails hands its counts in later.
func TestFailedCountsAreKeptForTheNextWrite(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	counter := received.NewCounter(pgsession.On(pool, ""), never, testenv.Logger(t))
	if _, err := pool.Exec(ctx, `ALTER TABLE webhook_minutes RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	if err := counter.HandIn(ctx); err != nil {
		t.Errorf("a program that has counted nothing: %v", err)
	}
	source := webhook.Source{Name: "shop"}
	counter.Observe(source, webhook.Accepted, nil)
	if err := counter.HandIn(ctx); err == nil {
		t.Fatal("it was handed in")
	}
	counter.Observe(source, webhook.Accepted, nil)
	if _, err := pool.Exec(ctx, `ALTER TABLE away RENAME TO webhook_minutes`); err != nil {
		t.Fatal(err)
	}
	if err := counter.HandIn(ctx); err != nil {
		t.Fatal(err)
	}
	sources, err := received.NewReader("", pool).Sources(ctx)
	if err != nil || len(sources) != 1 || sources[0].Day[webhook.Accepted] != 2 {
		t.Errorf("%+v, %v", sources, err)
	}
}
