// Package received counts what sources of webhooks receive, for people who look after them: how many requests were
// accepted and how many refused, and why.
//
// A [Counter] counts in memory and hands its counts in to the database at most once a minute, with one statement; a
// program that has nothing to count sends nothing. Each configured source has a row, so that one that receives nothing
// is seen as well. What comes in on paths of no source is not counted. A [Reader] reads the counts. The package has
// the SQL of its tables webhook_minutes and webhook_sources, which cron prunes.
//
// # Failures
//
// A program that is killed loses what it has counted since it last handed in: a minute at most. While the database
// cannot be reached, counts are added up; when the answer of the database was lost, they are counted twice.
package received
