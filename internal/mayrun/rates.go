package mayrun

// RolledRateSQL brings the counters of a limit (l) and its counters (c) up to clock.now:
//
//   - The windows are whole minutes and days of UTC, and never go back.
//   - What a window that is over has overshot is carried on: runs beyond the highest limit
//     that granted any in that window. Without such a limit nothing is.
//   - waiting are those put off to later windows: each window that has begun since takes
//     as many as it had room for. It is an estimate: an event that finds no room is put
//     off once more.
const RolledRateSQL = `
    SELECT minute_at, day_at,
        CASE minutes WHEN 0 THEN c.minute_count ELSE greatest(minute_over - (minutes - 1) * coalesce(l.per_minute, minute_over), 0) END AS minute_used,
        CASE days WHEN 0 THEN c.day_count ELSE greatest(day_over - (days - 1) * coalesce(l.per_day, day_over), 0) END AS day_used,
        CASE minutes WHEN 0 THEN c.minute_most END AS minute_most, CASE days WHEN 0 THEN c.day_most END AS day_most,
        greatest(c.waiting - greatest(CASE
            WHEN l.per_minute IS NULL THEN days * l.per_day - day_over
            ELSE least(minutes * l.per_minute - minute_over, (days + 1) * l.per_day - least(c.day_count, l.per_day) - day_over)
        END, 0), 0) AS waiting
    FROM (
        SELECT *, round(extract(epoch FROM minute_at - c.minute_at) / 60)::bigint AS minutes,
            round(extract(epoch FROM day_at - c.day_at) / 86400)::bigint AS days,
            greatest(c.minute_count - coalesce(c.minute_most, l.per_minute, c.minute_count), 0) AS minute_over,
            greatest(c.day_count - coalesce(c.day_most, l.per_day, c.day_count), 0) AS day_over
        FROM (SELECT greatest(date_bin('1 minute', clock.now, 'epoch'), c.minute_at) AS minute_at,
                greatest(date_bin('1 day', clock.now, 'epoch'), c.day_at) AS day_at) AS at
    ) AS elapsed`

// RateLimitsSQL are the limits (l) with their counts as they are now. No more events wait than there are: some may have
// been cancelled or deleted. Where there are 1,000 and more only the estimate is known.
const RateLimitsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
SELECT canvas_id, module, name, coalesce(l.per_minute, 0), coalesce(l.per_day, 0), l.mode, r.minute_used, r.day_used,
    r.minute_at + interval '1 minute' - clock.now, r.day_at + interval '1 day' - clock.now,
    CASE WHEN r.waiting = 0 THEN 0 WHEN l.module = '' THEN ` + putOffSQL + `LIMIT 1000) AS e)
    ELSE ` + putOffSQL + `AND e.module = l.module AND e.name = l.name LIMIT 1000) AS e) END
FROM clock CROSS JOIN rate_limits l JOIN rate_counters c USING (canvas_id, module, name) CROSS JOIN LATERAL (` + RolledRateSQL + `) AS r`

const putOffSQL = `(
        SELECT CASE WHEN count(*) < 1000 THEN least(count(*) FILTER (WHERE put_off), r.waiting) ELSE r.waiting END FROM (
            SELECT e.locked_at IS NOT NULL OR e.limited_attempt = ` + LimitedAttemptSQL + ` AS put_off FROM events_v2 e WHERE e.canvas_id = l.canvas_id `
