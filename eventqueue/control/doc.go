// Package control has the operations of operators and admin pages: [Rules] pauses and blocks
// handlers, [ConcurrencyLimits] bounds how many events run at once, [RateLimits] how many begin per
// minute and day, a [Requeuer] makes events run now, a [Changer] cancels, deletes and edits them, and a
// [Retrier] moves failed and cancelled ones back into the queue. Every operation may be repeated
// (I14). Events that may run because of it are notified at once.
package control
