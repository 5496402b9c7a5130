package service

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// identified is a notifier that other queues may use as well, as that on Pub/Sub.
type identified interface {
	// SetQueue tells it the identity of its queue.
	SetQueue(identity string)
}

// shared is one that pulls.
type shared interface {
	// ForeignError returns why it seems to be another queue's, too.
	ForeignError() error
}

// noteForeignEvery is how often it is recorded that notifications of another queue come.
const noteForeignEvery = 30 * time.Second

// identify tells the notifier which queue it is for. Where the identity cannot be read, notifications carry none.
func (s *Service) identify(ctx context.Context) {
	notifier, ok := s.notifier.(identified)
	if !ok {
		return
	}
	identity, err := s.store.Identity(ctx)
	if err != nil {
		s.log.Debug("notifications do not name their queue", zap.Error(err))
		return
	}
	notifier.SetQueue(identity)
}

// noteForeign records, until ctx ends, when notifications of another queue come. It sends nothing while none does.
func (s *Service) noteForeign(ctx context.Context) {
	notifier, ok := s.notifier.(shared)
	if !ok {
		return
	}
	ticker := time.NewTicker(noteForeignEvery / 10)
	defer ticker.Stop()
	var noted time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if notifier.ForeignError() == nil || time.Since(noted) < noteForeignEvery {
			continue
		}
		noted = time.Now()
		if err := s.store.NoteForeign(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("could not record that notifications of another queue come", zap.Error(err))
		}
	}
}
