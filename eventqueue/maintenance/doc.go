// Package maintenance does the work that a queue needs as a whole. A [Relay] publishes pending and
// lost notifications and removes unique keys that no longer hold. A [Pruner] deletes old entries
// from event_log. Any program may run them, and several may run at once. Without a relay, events
// whose notifications are pending (long delayed, emitted by SQL, not published) may never run;
// without a pruner event_log grows.
package maintenance
