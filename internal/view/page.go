package view

// Page is a list, or a part of one.
type Page[T any] struct {
	Items []T   `json:"items" nullable:"false"`
	Next  int64 `json:"next,omitempty" doc:"Of further items: after of the next request. Absent at the end."`
}

// PageOf makes a page of what was found. The list goes on after next; 0 is its end.
func PageOf[F, T any, N ~int64](found []F, next N, of func(F) T) Page[T] {
	return Page[T]{All(found, of), int64(next)}
}

// ListOf makes the only page of a list.
func ListOf[F, T any](found []F, of func(F) T) Page[T] { return Page[T]{Items: All(found, of)} }

// FullPageOf makes a page of a list that goes on after its last item if there are as many as were asked for.
func FullPageOf[F, T any, N ~int64](found []F, limit int, of func(F) T, id func(T) N) Page[T] {
	page := ListOf(found, of)
	if len(found) == limit {
		page.Next = int64(id(page.Items[limit-1]))
	}
	return page
}

// All makes the items of a list. It never returns nil, which JSON would have as null.
func All[F, T any](found []F, of func(F) T) []T {
	items := make([]T, 0, len(found))
	for _, f := range found {
		items = append(items, of(f))
	}
	return items
}
