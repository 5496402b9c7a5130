package service

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
)

const (
	// pruneOperatorsEvery is how often what operators have done is pruned.
	pruneOperatorsEvery = time.Hour
	// pruneOperatorsPage is how many rows one statement deletes.
	pruneOperatorsPage = 5000
	// pruneStatementTakes bounds one.
	pruneStatementTakes = 30 * time.Second
)

// ownActor is the actor in the audit log for rules lifted at their end.
func ownActor() audit.Actor {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return audit.Actor{Name: "cron", Source: host, Via: "cron"}
}

// pruneOperations deletes old entries of the audit log, and old changes of many events, at once and every hour,
// until ctx ends. What fails is logged, and tried again an hour later.
func (s *Service) pruneOperations(ctx context.Context) error {
	log := audit.NewLog(s.store.Schema(), s.pool)
	operations, err := operate.NewOperations(s.store, s.Queue, s.log)
	if err != nil {
		return err
	}
	for first := true; first || backoff.Sleep(ctx, pruneOperatorsEvery); first = false {
		if s.config.AuditLogFor > 0 {
			s.pruned(ctx, "entries of the audit log", func(ctx context.Context) (int, error) {
				return log.Prune(ctx, s.config.AuditLogFor, pruneOperatorsPage)
			})
		}
		s.pruned(ctx, "changes of many events", func(ctx context.Context) (int, error) {
			return operations.Prune(ctx, operate.RetainOperationsFor, pruneOperatorsPage)
		})
	}
	return nil
}

// pruned calls prune until there is nothing left, and logs how much there was.
func (s *Service) pruned(ctx context.Context, what string, prune func(ctx context.Context) (int, error)) {
	deleted := 0
	for more := true; more; {
		statement, cancel := context.WithTimeout(ctx, pruneStatementTakes)
		n, err := prune(statement)
		cancel()
		deleted += n
		if err != nil && ctx.Err() == nil {
			s.log.Warn(fmt.Sprintf("could not delete old %s; trying again in an hour", what), zap.Error(err))
		}
		more = err == nil && n == pruneOperatorsPage
	}
	if deleted > 0 {
		s.log.Info("deleted old "+what, zap.Int(logkey.Count, deleted))
	}
}
