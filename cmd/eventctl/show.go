package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one event, its value, and why it runs or does not",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(store *pgstore.Store, config service.Config) error {
				shown, err := store.Show(cmd.Context(), ids[0], config.LockTimeout)
				switch {
				case err != nil:
					return failed(fmt.Errorf("look up event %s: %w", ids[0], err))
				case shown.Queued != nil:
					return a.showQueued(shown, config.LockTimeout)
				case shown.Logged != nil:
					return a.showLogged(*shown.Logged)
				default:
					return notFound("event %s is neither in the queue nor in event_log: it never was, or it has completed and its history is not kept", ids[0])
				}
			})
		},
	}
}

func (a *app) showQueued(shown pgstore.Shown, lockTimeout time.Duration) error {
	e := *shown.Queued
	reasons := whyState(e, shown, lockTimeout)
	doc := struct {
		Event   eventDoc `json:"event"`
		Reasons []string `json:"reasons"`
	}{eventDocOf(e), reasons}
	at := func(t time.Time) string { return fmt.Sprintf("%s (%s)", clockTime(t), when(t, e.AsOf)) }
	return a.write(doc, func(w io.Writer) {
		rows := append(heading(e.Event, string(e.State)),
			[]string{"why", strings.Join(reasons, "; ")},
			[]string{"enqueued", at(e.EnqueuedAt)},
			[]string{"due", at(e.DelayUntil)},
			[]string{"retries", fmt.Sprintf("%d used, %s so far", e.Retries, plural(int64(e.Attempts), "claim"))})
		if e.OrderingKey != "" {
			rows = append(rows, []string{"key", printable(e.OrderingKey)})
		}
		table(w, rows)
		writeValue(w, e.Event)
	})
}

func heading(e eventqueue.Event, state string) [][]string {
	return [][]string{
		{"event", e.ID.String()},
		{"canvas", e.Canvas.String()},
		{"handler", printable(e.Handler().String())},
		{"state", state},
	}
}

// writeValue writes the value as JSON that means the same.
func writeValue(w io.Writer, e eventqueue.Event) {
	_, _ = fmt.Fprintf(w, "value, %s:\n%s\n", plural(len(e.Value), "byte"), printableJSON(e.Value))
}

// whyState explains a state: first what decides it, then what else stands in the
// way or is under way.
func whyState(e pgstore.QueuedEvent, shown pgstore.Shown, lockTimeout time.Duration) []string {
	var reasons []string
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if e.State == pgstore.EventRunning {
		say("a worker holds its lock, taken or renewed %s, valid for %s more",
			when(*e.LockedAt, e.AsOf), age(e.LockedAt.Add(lockTimeout).Sub(e.AsOf)))
	}
	for _, r := range shown.Rules {
		words := wordsOf(r.Type)
		say("%s by %s since %s", words.done, words.who, clockTime(r.CreatedAt))
	}
	if e.DelayUntil.After(e.AsOf) {
		say("not due for %s", age(e.DelayUntil.Sub(e.AsOf)))
	}
	if e.State != pgstore.EventRunning && e.LockedAt != nil {
		say("its lock expired %s: who held it died or lost contact, and the next claim takes it over", when(e.LockedAt.Add(lockTimeout), e.AsOf))
	}
	if e.State == pgstore.EventRunning {
		return reasons
	}
	if e.State == pgstore.EventWaiting {
		say("due and free: it runs as soon as a worker that has its handler looks at it")
	}
	if e.State == pgstore.EventBehind {
		return append(reasons, whyBehind(shown.Line))
	}
	switch {
	case e.NotifiedAt == nil:
		say("owed a notification, which the relay publishes when it is due")
	case e.NotifiedAt.After(e.AsOf):
		say("its notification comes %s", when(*e.NotifiedAt, e.AsOf))
	default:
		say("last notified %s", when(*e.NotifiedAt, e.AsOf))
	}
	return reasons
}

// whyBehind says in which line an event waits, and for whom.
func whyBehind(line *pgstore.Line) string {
	switch {
	case line == nil:
		return "it has just left the place where it waited"
	case line.Turn == 0:
		return fmt.Sprintf("it waits in the line of %s, where nobody has a turn: the relay gives it", line.Of)
	default:
		return fmt.Sprintf("it waits in the line of %s, %d at a time, where it is the turn of event %s", line.Of, line.Of.Max, line.Turn)
	}
}

func (a *app) showLogged(e pgstore.LogEntry) error {
	doc := struct {
		Logged logDoc `json:"logged"`
	}{logDocOf(e)}
	at := func(t time.Time) string { return fmt.Sprintf("%s (%s)", clockTime(t), when(t, e.AsOf)) }
	return a.write(doc, func(w io.Writer) {
		rows := append(heading(e.Event, string(e.Status)),
			[]string{"ended", at(e.EndedAt)},
			[]string{"enqueued", at(e.EnqueuedAt)},
			[]string{"retries", fmt.Sprintf("%d used, %s", e.Retries, plural(int64(e.Attempts), "claim"))})
		if e.Status == pgstore.LogFailed {
			rows = append(rows, []string{"last error", printable(e.LastError)})
		}
		table(w, rows)
		writeValue(w, e.Event)
	})
}
