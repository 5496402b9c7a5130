package service

import (
	"context"
	"log/slog"
	"strings"

	"eventsv2/internal/runlog"
)

// AttachLog returns a handler that passes each record on to next. What is logged with the context of a run, or one derived from it, is also
// attached to the event of the run: the last 50 lines, of 8 KiB or less, as [slog.TextHandler] writes them. They are written with the end of the
// run, where that leaves a row, and whoever may read the event's value sees them. An event whose value is encrypted has none, and neither has a batch.
//
//	slog.SetDefault(slog.New(service.AttachLog(slog.NewJSONHandler(os.Stderr, nil))))
func AttachLog(next slog.Handler) slog.Handler { return &attachedLog{next: next} }

// attachedLog is the handler of AttachLog.
type attachedLog struct {
	next slog.Handler
	with []func(slog.Handler) slog.Handler // the attributes and groups that next has in addition to those of AttachLog
}

// Enabled implements slog.Handler.
func (a *attachedLog) Enabled(ctx context.Context, level slog.Level) bool {
	return a.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (a *attachedLog) Handle(ctx context.Context, record slog.Record) error {
	if log, runs := ctx.Value(runlog.Key{}).(*runlog.Log); runs {
		log.Add(a.text(ctx, record))
	}
	return a.next.Handle(ctx, record)
}

// text is a record as a line.
func (a *attachedLog) text(ctx context.Context, record slog.Record) string {
	var b strings.Builder
	var handler slog.Handler = slog.NewTextHandler(&b, nil)
	for _, with := range a.with {
		handler = with(handler)
	}
	_ = handler.Handle(ctx, record) // a strings.Builder has no errors
	return strings.TrimSuffix(b.String(), "\n")
}

// WithAttrs implements slog.Handler.
func (a *attachedLog) WithAttrs(attributes []slog.Attr) slog.Handler {
	return a.derived(func(h slog.Handler) slog.Handler { return h.WithAttrs(attributes) })
}

// WithGroup implements slog.Handler.
func (a *attachedLog) WithGroup(name string) slog.Handler {
	return a.derived(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (a *attachedLog) derived(with func(slog.Handler) slog.Handler) slog.Handler {
	return &attachedLog{with(a.next), append(a.with[:len(a.with):len(a.with)], with)}
}
