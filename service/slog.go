package service

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newSlogLogger makes a logger that writes to a handler of log/slog. What is logged, and its fields, stay the
// same. It is safe for concurrent use, as handlers are.
func newSlogLogger(handler slog.Handler) *zap.Logger { return zap.New(&slogCore{handler}) }

// slogCore implements zapcore.Core.
type slogCore struct{ handler slog.Handler }

// levelOf is a level of zap as one of slog. What is above zap's error is a step above slog's.
func levelOf(level zapcore.Level) slog.Level {
	switch level {
	case zapcore.DebugLevel:
		return slog.LevelDebug
	case zapcore.InfoLevel:
		return slog.LevelInfo
	case zapcore.WarnLevel:
		return slog.LevelWarn
	case zapcore.ErrorLevel:
		return slog.LevelError
	default:
		return slog.LevelError + 4
	}
}

// Enabled implements zapcore.LevelEnabler.
func (c *slogCore) Enabled(level zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), levelOf(level))
}

// With implements zapcore.Core.
func (c *slogCore) With(fields []zap.Field) zapcore.Core {
	return &slogCore{c.handler.WithAttrs(attributesOf(fields))}
}

// Check implements zapcore.Core.
func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *slogCore) Write(entry zapcore.Entry, fields []zap.Field) error {
	record := slog.NewRecord(entry.Time, levelOf(entry.Level), entry.Message, entry.Caller.PC)
	record.AddAttrs(attributesOf(fields)...)
	return c.handler.Handle(context.Background(), record)
}

// Sync implements zapcore.Core. A handler of slog has no buffer that it could be asked to write.
func (*slogCore) Sync() error { return nil }

// attributesOf are fields as attributes, in their order. zap's own encoder reads them, so that
// each kind of field has the value that it has in zap's lines; an error has its text.
func attributesOf(fields []zap.Field) []slog.Attr {
	attributes := make([]slog.Attr, 0, len(fields))
	for _, field := range fields {
		read := zapcore.NewMapObjectEncoder()
		field.AddTo(read)
		for _, key := range slices.Sorted(maps.Keys(read.Fields)) { // an error may have two: its text, and its stack
			attributes = append(attributes, slog.Attr{Key: key, Value: groupOf(read.Fields[key])})
		}
	}
	return attributes
}

// groupOf is a value as handlers show it: an object is a group.
func groupOf(value any) slog.Value {
	object, ok := value.(map[string]any)
	if !ok {
		return slog.AnyValue(value)
	}
	attributes := make([]slog.Attr, 0, len(object))
	for key, inner := range object {
		attributes = append(attributes, slog.Attr{Key: key, Value: groupOf(inner)})
	}
	slices.SortFunc(attributes, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	return slog.GroupValue(attributes...)
}
