package main

// relay change the relay.
var relay = []mutant{
	{
		name:   "what-exceeds-the-rate-is-forgotten",
		breaks: "I1 I2",
		file:   "eventqueue/maintenance/publish.go",
		old:    `refusal.Report(r.log, r.store.LeavePending(ctx, ids))`,
		new:    `refusal.Report(r.log, error(nil))`,
	},
	{
		name:   "relay-forgets-the-rest",
		breaks: "I1 I2",
		file:   "eventqueue/maintenance/publish.go",
		old:    `slices.Concat(batch, rest)`,
		new:    `batch`,
	},
	{
		name:   "relay-pays-nothing",
		breaks: "I1 I2",
		file:   "eventqueue/maintenance/relay.go",
		old:    `due, err := takes.take(ctx, r.mostDue())`,
		new:    `due, err := []eventqueue.Notification(nil), error(nil)`,
	},
	{
		name:   "relay-searches-nothing",
		breaks: "I2",
		file:   "eventqueue/maintenance/relay.go",
		old:    `for more := true; more && err == nil;`,
		new:    `for more := false; more && err == nil;`,
	},
	{
		name:   "walk-rests-after-due-work",
		breaks: "I2 I20",
		file:   "eventqueue/maintenance/sweep.go",
		old:    `case w.looked:`,
		new:    `case true:`,
	},
	{
		name:   "walk-counts-due-work-as-looking",
		breaks: "I2 I20",
		file:   "eventqueue/maintenance/sweep.go",
		old:    `w.looked && swept.Live`,
		new:    `swept.Live`,
	},
}
