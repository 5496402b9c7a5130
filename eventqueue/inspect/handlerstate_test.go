package inspect_test

import (
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/internal/workerhandlers"
)

// A handler has each state that keeps its events from running or completing, the strongest first, and is open without any.
func TestHandlerHasTheStatesOfWhatKeepsItsEvents(t *testing.T) {
	t.Parallel()
	mail := eventqueue.Scope{Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Name: "mail_receipt"}
	elsewhere := mail
	elsewhere.Canvas[0]++
	canvas := eventqueue.Scope{Canvas: mail.Canvas}
	now := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	rule := func(t operate.RuleType, scope operate.RuleScope) operate.Rule {
		return operate.Rule{Type: t, RuleScope: scope}
	}
	of := func(scope eventqueue.Scope, modifier string) operate.RuleScope {
		return operate.RuleScope{Scope: scope, Modifier: modifier}
	}
	beginning := func(name string) operate.RuleScope {
		return operate.RuleScope{Scope: eventqueue.Scope{Canvas: mail.Canvas, Module: mail.Module, Name: name}, Prefix: true}
	}
	worker := func(busy int, names ...string) (w inspect.Worker) {
		w.State, w.Slots = inspect.WorkerLive, inspect.WorkerSlots{Of: 3, Busy: busy}
		for _, name := range names {
			for _, modifier := range []string{"eur", "usd"} {
				w.Handlers.Everywhere = append(w.Handlers.Everywhere, eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: modifier})
			}
		}
		return w
	}
	onCanvas := func(c eventqueue.CanvasID) (w inspect.Worker) {
		w.State = inspect.WorkerLive
		w.Handlers.OnCanvas = []eventqueue.CanvasHandler{{Canvas: c, Key: eventqueue.HandlerKey{Module: "WORKER", Name: mail.Name, Modifier: "_"}}}
		return w
	}
	away := func(scope eventqueue.Scope) inspect.Worker {
		w := worker(0, mail.Name)
		w.Breakers = []workerhandlers.Breaker{{Handler: workerhandlers.Handler{Module: mail.Module, Name: mail.Name, Modifier: "eur", Canvas: &scope.Canvas}, Error: "503"}}
		return w
	}
	dead := worker(3, mail.Name)
	dead.State = inspect.WorkerDead
	unreadable := worker(0)
	unreadable.Unreadable = true
	minute := func(ago time.Duration, completed, failed, retried int64) inspect.Minute {
		return inspect.Minute{Begins: now.Truncate(time.Minute).Add(-ago), AsOf: now, Counts: minutes.Counts{Scope: mail, Completed: completed, Failed: failed, Retried: retried}}
	}
	rate := func(scope eventqueue.Scope, used, waiting int64) operate.RateStatus {
		return operate.RateStatus{RateLimit: operate.RateLimit{Scope: scope, PerMinute: 5}, Windows: ratelimit.Windows{MinuteUsed: used, Waiting: waiting}}
	}
	limit := func(scope eventqueue.Scope, admitted, waiting int) inspect.LimitInUse {
		return inspect.LimitInUse{ConcurrencyLimit: operate.ConcurrencyLimit{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Max: 2}, Admitted: admitted, Waiting: waiting}
	}
	for name, test := range map[string]struct {
		rules   []operate.Rule
		workers []inspect.Worker // nil: one that has the handler and a free slot
		rates   []operate.RateStatus
		limits  []inspect.LimitInUse
		waiting []string // modifiers
		minutes []inspect.Minute
		want    string
	}{
		"nothing": {want: "open"},
		"paused":  {rules: []operate.Rule{rule(operate.PauseRule, of(mail, ""))}, want: "paused"},
		"paused by the beginning of its name": {rules: []operate.Rule{rule(operate.PauseRule, beginning("mail_")), rule(operate.BlockRule, beginning("ship_"))},
			want: "paused"},
		"paused elsewhere": {rules: []operate.Rule{rule(operate.PauseRule, of(elsewhere, ""))}, want: "open"},
		"a modifier paused, and all blocked": {rules: []operate.Rule{rule(operate.PauseRule, of(mail, "eur")), rule(operate.PauseRule, of(mail, "")), rule(operate.BlockRule, of(mail, ""))},
			want: "blocked, paused, paused"},
		"a modifier paused, and no worker": {rules: []operate.Rule{rule(operate.PauseRule, of(mail, "eur"))}, workers: []inspect.Worker{worker(0, "other")},
			want: "no worker The live worker does not have it., paused"},
		"the whole queue held":                       {rules: []operate.Rule{rule(operate.BlockRule, of(mail, "")), rule(operate.PauseRule, operate.WholeQueue)}, want: "held, blocked"},
		"no worker":                                  {workers: []inspect.Worker{dead}, want: "no worker No worker is connected."},
		"workers without it":                         {workers: []inspect.Worker{dead, worker(0, "other"), onCanvas(elsewhere.Canvas)}, want: "no worker None of the 2 live workers has it."},
		"a worker of the canvas":                     {workers: []inspect.Worker{onCanvas(mail.Canvas)}, want: "open"},
		"a worker whose handlers cannot all be read": {workers: []inspect.Worker{unreadable}, want: "open"},
		"a modifier without a worker": {waiting: []string{"eur", "gbp", "usd"},
			want: "no worker No worker for modifier gbp. No live worker, of which there are 1, has its handler WORKER/mail_receipt/gbp."},
		"modifiers without a worker": {workers: []inspect.Worker{worker(0, mail.Name), onCanvas(mail.Canvas), onCanvas(elsewhere.Canvas)}, waiting: []string{"", "_", "chf", "eur", "gbp", "nok", "sek"},
			want: "no worker No worker for modifiers \"\", chf, gbp, 2 more. No live worker, of which there are 3, has its handler with any of them."},
		"a modifier with a worker elsewhere": {workers: []inspect.Worker{worker(0, mail.Name), onCanvas(elsewhere.Canvas)}, waiting: []string{"_"},
			want: "no worker No worker for modifier _. No live worker, of which there are 2, has its handler WORKER/mail_receipt/_."},
		"a modifier without a worker, and one paused": {rules: []operate.Rule{rule(operate.PauseRule, of(mail, "eur"))}, rates: []operate.RateStatus{rate(canvas, 7, 0)}, waiting: []string{"gbp"},
			want: "over its limit The rate limit of the whole canvas has no room: 5 per minute., paused, no worker No worker for modifier gbp. No live worker, of which there are 1, has its handler WORKER/mail_receipt/gbp."},
		"a modifier, and no worker at all":                 {workers: []inspect.Worker{worker(0, "other")}, waiting: []string{"eur"}, want: "no worker The live worker does not have it."},
		"a modifier, and handlers that cannot all be read": {workers: []inspect.Worker{worker(0, mail.Name), unreadable}, waiting: []string{"gbp"}, want: "open"},
		"its target away":                                  {workers: []inspect.Worker{away(mail), away(mail), dead}, want: "target away What the handler calls is away, so its circuit breaker is open in all 2 workers that have it: 503."},
		"its target away for one worker of two":            {workers: []inspect.Worker{away(mail), worker(0, mail.Name)}, want: "open"},
		"a target away elsewhere":                          {workers: []inspect.Worker{away(elsewhere)}, want: "open"},
		"all slots busy":                                   {workers: []inspect.Worker{worker(3, mail.Name), worker(3, mail.Name), worker(0, "other")}, want: "all slots busy All 6 slots of 2 workers are busy."},
		"a slot free":                                      {workers: []inspect.Worker{worker(3, mail.Name), worker(2, mail.Name)}, want: "open"},
		"its rate used up":                                 {rates: []operate.RateStatus{rate(mail, 5, 35)}, want: "over its limit The rate limit of the handler has no room: 5 per minute; about 35 wait."},
		"its canvas' rate":                                 {rates: []operate.RateStatus{rate(canvas, 7, 0)}, want: "over its limit The rate limit of the whole canvas has no room: 5 per minute."},
		"put off by its rate":                              {rates: []operate.RateStatus{rate(mail, 1, 4)}, want: "over its limit The rate limit of the handler has put events off; about 4 wait."},
		"room in its rate":                                 {rates: []operate.RateStatus{rate(mail, 4, 0), rate(elsewhere, 5, 5)}, want: "open"},
		"as many at once as may": {limits: []inspect.LimitInUse{limit(canvas, 2, 1), limit(mail, 2, 0)},
			want: "over its limit The concurrency limit of the whole canvas lets 2 run at once, and others wait."},
		"all runs fail":          {minutes: []inspect.Minute{minute(9*time.Minute, 0, 1, 0), minute(0, 0, 0, 2)}, want: "failing All 3 runs of the last 10 minutes failed."},
		"most runs fail":         {minutes: []inspect.Minute{minute(9*time.Minute, 1, 1, 0), minute(0, 0, 0, 2)}, want: "open"},
		"all runs failed before": {minutes: []inspect.Minute{minute(11*time.Minute, 0, 9, 0), minute(0, 0, 0, 2)}, want: "open"},
		"everything at once": {rules: []operate.Rule{rule(operate.PauseRule, of(mail, ""))}, workers: []inspect.Worker{worker(3, mail.Name)}, rates: []operate.RateStatus{rate(mail, 5, 0)},
			minutes: []inspect.Minute{minute(0, 0, 0, 3)},
			want:    "paused, over its limit The rate limit of the handler has no room: 5 per minute., all slots busy All 3 slots of the worker are busy., failing All 3 runs of the last 10 minutes failed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.workers == nil {
				test.workers = []inspect.Worker{worker(0, mail.Name)}
			}
			facts := inspect.HandlerFacts{Rules: test.rules, Rates: test.rates, Limits: test.limits, Serving: inspect.ServingOf(test.workers), Waiting: map[eventqueue.Scope][]string{mail: test.waiting}, Minutes: test.minutes}
			var got []string
			for _, s := range facts.States(mail) {
				got = append(got, strings.TrimSpace(string(s.State)+" "+s.Why))
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("its states are %s", got)
			}
		})
	}
}
