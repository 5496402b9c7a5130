// Package view has one type for each fact that people and programs read: events, attempts, explanations, rules, limits,
// cron definitions, workers, counts, bulk operations, rows of the audit log, sources of webhooks and tokens. The JSON
// of eventctl, the answers of the HTTP API and the pages of the dashboard are written from these types, so that a
// fact has the same name, unit and sentence wherever it is read.
//
// Times are in UTC and in the form of RFC 3339. Durations are numbers of seconds, and their names end with _seconds.
// A field that does not apply is absent. A list is an object with items, and with next if there are more of them.
//
// A type here is made from that of the package which reads the fact, by a function XOf. Fields that JSON leaves out are for the
// sentences, which are methods. Their texts come from events and names as they are: who shows them escapes them.
//
// The package is internal, since an application that embeds the queue reads the types that these are made from, and one that uses
// the HTTP API has its OpenAPI document: neither calls anything here.
package view
