package eventctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

// foundDoc is the result of find.
type foundDoc struct {
	Items []view.Event `json:"items"`
	// More reports whether there are, or may be, further ones, with lower ids.
	More bool `json:"more"`
}

func findCommand(p *program) *cobra.Command {
	var pairs []string
	var uniqueKey, orderingKey string
	var limit int
	cmd := &cobra.Command{
		Use:   "find {--attribute KEY=VALUE | --unique-key KEY | --ordering-key KEY}",
		Short: "Find events by an attribute or a key, whether they wait, run or have ended",
		Long: "Find events by their attributes, their unique key or their ordering key, the newest first, whether they\n" +
			"wait, run, have completed, have failed or were cancelled. Completed ones are found for as long as the workers\n" +
			"retain them (RETAIN_HISTORY, HISTORY_COMPLETED_FOR). It reads the queue and event_log until it has found as many as --limit,\n" +
			"10,000 rows per statement: with --limit 1 it stops at the newest. The exit status is 3 if there is none.",
		Example: "  eventctl find --attribute order=17\n" +
			"  eventctl find --unique-key 'order 17' --limit 1",
		Args: cobra.NoArgs,
	}
	flags := addFilter(cmd)
	addAttributes(cmd, &pairs, "events with this attribute, as `key=value`; several: with all of them")
	cmd.Flags().StringVar(&uniqueKey, "unique-key", "", "events that were emitted with this unique `key`")
	cmd.Flags().StringVar(&orderingKey, "ordering-key", "", "events with this ordering `key`")
	addLimit(cmd, &limit)
	cmd.MarkFlagsOneRequired("attribute", "unique-key", "ordering-key")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := flags.filter()
		if err != nil {
			return err
		}
		if err := errors.Join(checkGiven(cmd, "unique-key", "ordering-key"), checkLimit(limit)); err != nil {
			return err
		}
		if filter.Attributes, err = parseAttributes(pairs); err != nil {
			return err
		}
		filter.UniqueKey, filter.OrderingKey = uniqueKey, orderingKey
		return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
			doc, err := newestOf(cmd.Context(), reader, filter, limit)
			switch {
			case err != nil:
				return failed(fmt.Errorf("find events: %w", err))
			case len(doc.Items) == 0:
				return notFound("no event is found: none was emitted with that, or it has completed and its history is not kept (RETAIN_HISTORY)")
			default:
				return p.writeFound(doc)
			}
		})
	}
	return cmd
}

// newestOf returns the newest events, at most limit, that the filter selects in the queue and in event_log. The queue is read
// first: what ends meanwhile is found in event_log.
func newestOf(ctx context.Context, reader *inspect.Reader, filter inspect.Filter, limit int) (doc foundDoc, err error) {
	found := map[eventqueue.EventID]view.Event{}
	oldest := eventqueue.EventID(0) // of as many as were wanted: no older one is shown
	for after := eventqueue.EventID(0); oldest == 0; {
		events, next, err := reader.List(ctx, filter, "", true, after, limit-len(found))
		if err != nil {
			return doc, err
		}
		for i := range events {
			found[events[i].ID] = view.EventOf(events[i])
		}
		if after = next; next == 0 {
			break
		}
		if len(found) == limit {
			oldest, doc.More = next, true
		}
	}
	ended := 0
	for after := (inspect.LogPlace{}); ended < limit; {
		entries, next, err := reader.Log(ctx, inspect.LogFilter{Filter: filter}, true, after, limit-ended)
		if err != nil {
			return doc, err
		}
		for i := range entries {
			found[entries[i].ID] = view.EndedEventOf(entries[i])
		}
		ended += len(entries)
		if after = next; next == (inspect.LogPlace{}) || next.ID < oldest {
			break
		}
		doc.More = doc.More || ended == limit
	}
	doc.Items = slices.SortedFunc(maps.Values(found), func(a, b view.Event) int { return cmp.Compare(b.ID, a.ID) })
	if len(doc.Items) > limit {
		doc.Items, doc.More = doc.Items[:limit], true
	}
	return doc, nil
}

func (p *program) writeFound(doc foundDoc) error {
	return p.write(doc, func(w io.Writer) {
		printing.Table(w, tableOf(doc.Items, "ID  STATE  AGE  ENDED  RETRIES  MODULE  NAME  MODIFIER  CANVAS  WHY", func(e view.Event) []any {
			return append(append([]any{e.ID, e.State, e.Age(), e.When(e.EndedAt), e.Retries}, handlerCells(e)...), printing.Brief(e.WhyEnded()))
		}))
		if doc.More {
			_, _ = fmt.Fprintln(w, "there may be more: raise --limit")
		}
	})
}
