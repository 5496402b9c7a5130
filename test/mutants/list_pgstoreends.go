package main

// pgstoreends change edits, the history and inserts.
var pgstoreends = []mutant{
	{
		name:   "edit-of-a-live-event",
		breaks: "I4",
		file:   "eventqueue/pgstore/edit.go",
		old:    `mayrun.UnlockedSQL("e.locked_at",`,
		new:    `mayrun.UnlockedSQL("NULL::timestamptz",`,
	},
	{
		name:   "edit-leaves-an-expired-lock",
		breaks: "I5",
		file:   "eventqueue/pgstore/edit.go",
		old:    "` + clearLockSQL + `\n",
		new:    "SET\n",
	},
	{
		name:   "prune-of-every-status",
		breaks: "I1",
		file:   "eventqueue/pgstore/history.go",
		old:    `status::text = $1::text AND created_at <= bound.ended AS outdated`,
		new:    `created_at <= bound.ended AS outdated`,
	},
	{
		name:   "emit-in-a-transaction-follows-the-search-path",
		breaks: "I1",
		file:   "eventqueue/pgstore/insert.go",
		old:    "\tin = s.pool.In(in)\n",
		new:    ``,
	},
	{
		name:   "emit-by-the-emitters-clock",
		breaks: "I6",
		file:   "eventqueue/pgstore/insert.go",
		old:    `delays[i] = roundUpMicroseconds(e.Delay)`,
		new:    "delays[i] = roundUpMicroseconds(e.Delay)\n\t\tif e.Delay > 0 {\n\t\t\tuntils[i] = new(time.Now().Add(e.Delay))\n\t\t}",
	},
	{
		name:   "emit-delay-truncated",
		breaks: "I6",
		file:   "eventqueue/pgstore/insert.go",
		old:    `return int64((d + time.Microsecond - 1) / time.Microsecond)`,
		new:    `return int64(d/time.Second) * 1_000_000`,
	},
	{
		name:   "batch-goes-to-one-handler",
		breaks: "I16",
		file:   "eventqueue/pgstore/insert.go",
		old:    `place = int32(len(canvases))`,
		new:    `place = 1`,
	},
	{
		name:   "batch-forgets-canvases",
		breaks: "I16",
		file:   "eventqueue/pgstore/insert.go",
		old:    `at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: e.Handler()}`,
		new:    `at := eventqueue.CanvasHandler{Key: e.Handler()}`,
	},
	{
		name:   "far-off-event-counts-as-notified",
		breaks: "I2 I13",
		file:   "eventqueue/pgstore/insert.go",
		old:    `'low' AND due <= (SELECT now FROM clock) + $9::bigint * interval '1 microsecond' THEN`,
		new:    `'low' AND $9::bigint IS NOT NULL THEN`,
	},
	{
		name:   "attributes-of-a-batch-go-to-the-first",
		breaks: "I16",
		file:   "eventqueue/pgstore/insert.go",
		old:    `texts[i] = new(attributes.Encode`,
		new:    `texts[0] = new(attributes.Encode`,
	},
	{
		name:   "key-is-not-waited-for",
		breaks: "I3",
		file:   "migrations/00011_keys.sql",
		old:    `DO UPDATE SET event_id = k.event_id WHERE false`,
		new:    `DO NOTHING`,
	},
	{
		name:   "low-priority-is-notified-at-once",
		breaks: "I20",
		file:   "eventqueue/pgstore/insert.go",
		old:    `CASE WHEN priority IS DISTINCT FROM 'low' THEN (SELECT now FROM clock WHERE $7::boolean) END`,
		new:    `(SELECT now FROM clock WHERE $7::boolean)`,
	},
}
