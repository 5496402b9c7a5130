// Package service connects a program to the database and the notifier. One value emits,
// registers handlers, and runs a worker, the relay, cron and the pruning of the history.
// The programs in cmd/ are built on it.
//
// # Use
//
//	s, err := service.Open(ctx, service.Config{DatabaseURL: url})
//	// …
//	defer s.Close()
//	err = service.On(s, "mail", func(ctx context.Context, e OrderPlaced, run *eventqueue.Run) error { … })
//	// …
//	err = s.Run(ctx)
//
// A [Service] emits as an [eventqueue.Queue] does. The zero [Config] provides a
// notifier that fits (see [Config.Notifier]), heartbeats on a connection of their own,
// due events found in the database while Pub/Sub is down, and a log. Each part that Run
// runs can be switched off. The packages below it (eventqueue, its worker, maintenance
// and control, cronchecker, the notifiers) can be used without it.
//
// # Failures
//
// A program starts even if Postgres or Pub/Sub cannot be reached, does what can be done
// without them, and uses them when they answer. Wrong settings are refused by Open, by name and
// before anything is written; what can only be seen later (a right that is missing, a
// subscription that would lose events) is an error of Open if it can be seen there, and
// of Run otherwise. The error says what to change.
package service
