package main

// cron change which slots become events.
var cron = []mutant{
	{
		name:   "refused-definition-comes-again-at-once",
		breaks: "I10 I15",
		file:   "cronchecker/checker.go",
		old:    `due.more && err == nil`,
		new:    `due.more`,
	},
	{
		name:   "cron-skips-nothing-that-is-paused",
		breaks: "I7",
		file:   "cronchecker/definition.go",
		old:    `case m.Paused:`,
		new:    `case m.Paused && m.Running && m.Alone:`,
	},
	{
		name:   "cron-emits-all-that-it-missed",
		breaks: "I10",
		file:   "cronchecker/definition.go",
		old:    `m.Running = m.Alone`,
		new:    `m.Running = m.Alone && m.Paused`,
	},
	{
		name:   "cron-latest-is-all",
		breaks: "I10",
		file:   "cronchecker/due.go",
		old:    `if d.Missed == MissedAll {`,
		new:    `if d.Missed != MissedNone {`,
	},
	{
		name:   "cron-emits-however-late",
		breaks: "I10",
		file:   "cronchecker/due.go",
		old:    `d.Missed == MissedNone && now.Sub(latest) > late`,
		new:    `d.Missed == MissedNone && now.Before(latest)`,
	},
	{
		name:   "cron-slot-is-emitted-again",
		breaks: "I10",
		file:   "cronchecker/postgres.go",
		old:    ` && slot.At.After(last[slot.Cron])`,
		new:    ``,
	},
	{
		name:   "cron-slot-is-not-recorded",
		breaks: "I10",
		file:   "cronchecker/postgres.go",
		old:    `return record(ctx, p.schema.On(tx), ours, skips, ids)`,
		new:    "_ = ids\n\t\treturn nil",
	},
	{
		name:   "cron-checkers-do-not-exclude-each-other",
		breaks: "I10",
		file:   "cronchecker/postgres.go",
		old:    "\nFOR NO KEY UPDATE SKIP LOCKED",
		new:    ``,
	},
	{
		name:   "cron-slot-before-its-start",
		breaks: "I10",
		file:   "cronchecker/postgres.go",
		old:    `locked && slot.At.After(start) &&`,
		new:    `locked && !start.IsZero() &&`,
	},
}
