package eventctl

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
)

func showCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one event, its value, and why it runs or does not",
		Long: "Show one event, in the queue or in event_log: its value, its last claim, and why it runs or does not.\n" +
			"Control characters in a value are escaped.",
		Example: "  eventctl show 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				shown, err := reader.Show(cmd.Context(), ids[0])
				switch {
				case err != nil:
					return failed(fmt.Errorf("query event %s: %w", ids[0], err))
				case shown.Queued != nil:
					return p.showQueued(shown)
				case shown.Logged != nil:
					return p.showLogged(shown)
				default:
					return notFound("event %s is neither in the queue nor in event_log: it never was, or it has completed and its history is not kept", ids[0])
				}
			})
		},
	}
}

func (p *program) showQueued(shown inspect.Shown) error {
	e := *shown.Queued
	reasons := whyState(e, shown)
	doc := struct {
		Event    eventDoc     `json:"event"`
		Reasons  []string     `json:"reasons"`
		Attempts []attemptDoc `json:"failed_attempts"`
	}{eventDocOf(e), reasons, rowsOf(shown.Attempts, attemptDocOf)}
	rows := append(eventHeading(e.Event, string(e.State)),
		[]string{"why", strings.Join(reasons, "; ")},
		[]string{"enqueued", printing.TimeAndAge(e.EnqueuedAt, e.AsOf)},
		[]string{"due", printing.TimeAndAge(e.DelayUntil, e.AsOf)},
		[]string{"retries", fmt.Sprintf("%d used, %s so far", e.Retries, printing.Plural(e.Attempts, "claim"))})
	if claim := claimText(e.ClaimID); claim != "" {
		rows = append(rows, []string{"last claim", claim + whetherBegun(e)})
	}
	if e.Holder != nil {
		rows = append(rows, []string{"held by", fmt.Sprintf("%s, which is %s; started %s, version %s", workerText(*e.Holder), e.Holder.State,
			printing.TimeAndAge(e.Holder.StartedAt, e.AsOf), printing.Printable(e.Holder.Version))})
	}
	if e.OrderingKey != "" {
		rows = append(rows, []string{"key", printing.Printable(e.OrderingKey)})
	}
	return p.writeEvent(doc, append(rows, originRows(e.Event)...), shown, e.Event)
}

func (p *program) showLogged(shown inspect.Shown) error {
	e := *shown.Logged
	doc := struct {
		Logged   logDoc       `json:"logged"`
		Attempts []attemptDoc `json:"failed_attempts"`
	}{logDocOf(e), rowsOf(shown.Attempts, attemptDocOf)}
	rows := append(eventHeading(e.Event, string(e.Status)),
		[]string{"ended", printing.TimeAndAge(e.EndedAt, e.AsOf)},
		[]string{"enqueued", printing.TimeAndAge(e.EnqueuedAt, e.AsOf)},
		[]string{"retries", fmt.Sprintf("%d used, %s", e.Retries, printing.Plural(e.Attempts, "claim"))})
	if e.Status == inspect.LogFailed {
		rows = append(rows, []string{"last error", printing.Printable(e.LastError)})
	}
	if e.Actor != "" {
		rows = append(rows, []string{"cancelled by", printing.Printable(e.Actor)})
	}
	if e.Reason != "" {
		rows = append(rows, []string{"reason", printing.Printable(e.Reason)})
	}
	return p.writeEvent(doc, append(rows, originRows(e.Event)...), shown, e.Event)
}

func (p *program) writeEvent(doc any, rows [][]string, shown inspect.Shown, e eventqueue.Event) error {
	return p.write(doc, func(w io.Writer) {
		printing.Table(w, rows)
		writeAttempts(w, shown)
		writeValue(w, e)
	})
}

func eventHeading(e eventqueue.Event, state string) [][]string {
	return [][]string{
		{"event", e.ID.String()},
		{"canvas", e.Canvas.String()},
		{"handler", printing.Printable(e.Handler().String())},
		{"state", state},
	}
}

// whetherBegun returns whether the run of a claim has begun, and so how the claim counts if
// its lock expires.
func whetherBegun(e inspect.QueuedEvent) string {
	switch {
	case e.LockedAt == nil:
		return ""
	case e.Begun && e.Company == 1:
		return ", whose run has begun, as the only suspect in its worker: if it is lost, that is a failed attempt"
	case e.Begun:
		return ", whose run has begun: if it is lost, the event is a suspect, and no attempt is used"
	default:
		return ", of which no run is known to have begun: if it is lost, no attempt is used"
	}
}

// whyState explains a state: first the reason for it, then everything else that delays the
// event or is happening to it.
func whyState(e inspect.QueuedEvent, shown inspect.Shown) []string {
	var reasons []string
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if e.State == inspect.Running {
		add("a worker holds its lock, taken or renewed %s, valid for %s more",
			printing.When(*e.LockedAt, e.AsOf), printing.Age(e.LockedAt.Add(e.LockValidFor).Sub(e.AsOf)))
	}
	for _, r := range shown.Rules {
		add("%s%s", wordsOf(r.Type).added, ruleText(r))
	}
	if e.DelayUntil.After(e.AsOf) {
		add("not due for %s", printing.Age(e.DelayUntil.Sub(e.AsOf)))
	}
	if e.State == inspect.Running {
		if e.Holder != nil && e.Holder.State == inspect.WorkerDead {
			add("that worker is dead, so the event is taken over when the lock expires")
		}
		return reasons
	}
	if e.LockedAt != nil {
		add("its lock expired %s: who held it died or lost contact, and the next claim takes it over", printing.When(e.LockedAt.Add(e.LockValidFor), e.AsOf))
	}
	if e.State == inspect.Waiting {
		add("due and free: it runs as soon as a worker that has its handler claims it")
	}
	if e.State == inspect.Behind {
		return append(reasons, whyBehind(shown.Group))
	}
	return append(reasons, whyNotified(e))
}

// whyNotified describes the last notification of an event, or the next one if it is
// pending.
func whyNotified(e inspect.QueuedEvent) string {
	switch {
	case e.NotifiedAt == nil:
		return "its notification is pending: the relay publishes it when the event is due"
	case e.NotifiedAt.After(e.AsOf):
		return "its notification comes " + printing.When(*e.NotifiedAt, e.AsOf)
	default:
		return "last notified " + printing.When(*e.NotifiedAt, e.AsOf)
	}
}

// whyBehind describes the ordering group in which an event waits, and the event that it
// waits for.
func whyBehind(group *inspect.Group) string {
	switch {
	case group == nil:
		return "it has just left the place where it waited"
	case group.Next == 0:
		return fmt.Sprintf("it waits in the ordering group of %s, in which no event may run at the moment: the relay advances it", group.Of)
	default:
		return fmt.Sprintf("it waits in the ordering group of %s, %d at a time, behind event %s", group.Of, group.Of.Max, group.Next)
	}
}
