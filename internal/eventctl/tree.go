package eventctl

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
)

func treeCommand(p *program) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "tree ID",
		Short: "Show which events an event caused, and by which it was caused",
		Long: "Show the tree of an event: the event that began it all, the events that its handler emitted,\n" +
			"those that their handlers emitted, and so on. Events that have ended are part of it if they are in\n" +
			"event_log. One that is gone is shown by its id as long as it has children; what caused it is not\n" +
			"known any more.",
		Example: "  eventctl tree 17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			if limit < 1 || limit > maxPage {
				return badInput(fmt.Errorf("--limit is %d: it must be from 1 to %d", limit, maxPage))
			}
			return p.withReader(cmd.Context(), func(reader *inspect.Reader) error {
				tree, more, err := reader.Tree(cmd.Context(), ids[0], limit)
				switch {
				case err != nil:
					return failed(fmt.Errorf("query the tree of event %s: %w", ids[0], err))
				case tree == nil:
					return notFound("event %s is neither in the queue nor in event_log, and no event there is a child of it", ids[0])
				}
				return p.writeTree(tree, ids[0], more)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 1000, "show at most this `number` of events")
	return cmd
}

func (p *program) writeTree(tree *inspect.Tree, asked eventqueue.EventID, more bool) error {
	return p.write(view.TreeOf(tree, more, func(view.Event) bool { return true }), func(w io.Writer) {
		drawTree(w, tree, asked, "", "")
		if more {
			_, _ = fmt.Fprintln(w, "there are more events: see --limit")
		}
	})
}

// drawTree draws an event after first, and what it caused after rest.
func drawTree(w io.Writer, t *inspect.Tree, asked eventqueue.EventID, first, rest string) {
	words := []string{t.ID.String(), "gone"}
	if e := view.FoundEvent(t.Queued, t.Logged); e != nil {
		words = append(words[:1], e.State, printing.Printable(e.Handler().String()))
		if e.Original != 0 {
			words = append(words, fmt.Sprintf("(replayed from %s)", e.Original))
		}
	}
	if t.ID == asked {
		words = append(words, "←")
	}
	_, _ = fmt.Fprintln(w, first+strings.Join(words, "  "))
	for i, child := range t.Children {
		if i < len(t.Children)-1 {
			drawTree(w, child, asked, rest+"├─ ", rest+"│  ")
		} else {
			drawTree(w, child, asked, rest+"└─ ", rest+"   ")
		}
	}
}
