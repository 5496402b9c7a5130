package pgstore

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// Listen listens on the connection of a reserve, as the receiver behind it does.
func Listen(ctx context.Context, r worker.Reserve, wake func(lost bool)) error {
	return r.(*reserve).listen(ctx, wake)
}

// Searching is the store as a worker with some handlers searches it for lost notifications.
func (s *Store) Searching(known eventqueue.HandlerSet) *Store { return s.searching(known) }

// PendingEvents is how many events one count of what is pending reads, and PendingScopes how many handlers it visits.
const (
	PendingEvents = pendingEvents
	PendingScopes = pendingScopes
)
