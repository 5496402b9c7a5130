// Package eventstest is for the tests of programs that use the queue: what was emitted, what a handler does with an
// event, and what happens an hour later.
//
//	q := eventstest.New(t, service.Config{DatabaseURL: eventstest.Database(t, os.Getenv("DATABASE_URL"))})
//	service.On(q.Service, "mail", sendMail) // or the program's own function that registers its handlers
//	…                                       // call the program, with q.Service
//	q.RequireEmitted(OrderPlaced{Order: 1})
//	q.Drain()                               // run what is due
//	q.Advance(time.Hour)                    // retries, delays, rate limits and cron slots come due
//	q.Drain()
//
// Everything runs on Postgres, by the code and the SQL of production: transactions, CompleteTx, unique and ordering keys,
// rules and limits are the real ones. Nothing runs by itself, though: events run in [Queue.Work], [Queue.Drain] and
// [Queue.RunCron], one after the other, while the test waits, and the first two emit the cron slots that are due.
//
// # Time
//
// The clock of the database stands still until [Queue.Advance] moves it. It is what the queue goes by: delays, waits
// before retries, rate limits, unique keys, rules with an end, slots of crons. The clock of the program goes on, so
// time-outs of handlers are real time, and time.Now in the code under test does not see Advance: emit with a Delay and
// not a DelayUntil, and give code that needs a clock [Queue.Now]. For code that itself waits or sleeps there is package
// queuetest, with which both clocks are that of a bubble of testing/synctest.
//
// now() and CURRENT_TIMESTAMP in statements of yours are real time; as defaults of columns of tables that are there when New
// is called they are the test's.
//
// # Limits
//
// Events run one at a time: a handler that waits for another event's handler waits in vain. Workers that die, lost
// notifications and the notifier itself are not tested; the tests of the queue do that. Failures of the database
// end the test.
package eventstest
