package service

import (
	"context"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// part is one of those that Run runs.
type part struct {
	name   string
	fields []zap.Field // of the line that it has started
	run    func(ctx context.Context) error
	// ends has the end of this part, without an error, stop the others.
	ends bool
}

// runTogether runs parts until ctx ends, one of them fails, or one is done that ends the
// others.
func runTogether(ctx context.Context, log *zap.Logger, parts []part) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if len(parts) == 0 {
		<-ctx.Done()
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		log.Info(p.name+" started", p.fields...)
		group.Go(func() error {
			err := p.run(ctx)
			log.Info(p.name + " stopped")
			if p.ends {
				stop()
			}
			return err
		})
	}
	return group.Wait()
}
