package view

import "eventsv2/eventqueue/inspect"

// Tree is an event with its ancestors and all that descends from them.
type Tree struct {
	Items []Event `json:"items" nullable:"false" doc:"Each before its children; parent_id says whose child an event is."`
	More  bool    `json:"more,omitempty" doc:"There are others, beyond the limit."`
}

// TreeOf lists the events of a tree that its reader may see. Of an ancestor that is gone, or on a canvas of others, there is only the
// parent_id of its children.
func TreeOf(root *inspect.Tree, more bool, see func(Event) bool) Tree {
	tree := Tree{Items: []Event{}, More: more}
	Walk(root, func(t *inspect.Tree, _ int) {
		if e := FoundEvent(t.Queued, t.Logged); e != nil && see(*e) {
			tree.Items = append(tree.Items, *e)
		}
	})
	return tree
}

// Walk calls f for each event of a tree, before its children, with how many generations it is below the root.
func Walk(root *inspect.Tree, f func(t *inspect.Tree, depth int)) { walk(root, 0, f) }

func walk(t *inspect.Tree, depth int, f func(t *inspect.Tree, depth int)) {
	if t == nil {
		return
	}
	f(t, depth)
	for _, child := range t.Children {
		walk(child, depth+1, f)
	}
}
