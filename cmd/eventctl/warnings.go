package main

import (
	"fmt"

	"go.uber.org/zap/zapcore"
)

// warnings is a zap core that turns log entries into warnings on standard error.
// It is safe for concurrent use as far as standard error is.
type warnings struct {
	app    *app
	fields []zapcore.Field
}

// Enabled implements zapcore.Core.
func (w *warnings) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (w *warnings) With(fields []zapcore.Field) zapcore.Core {
	return &warnings{w.app, append(append([]zapcore.Field(nil), w.fields...), fields...)}
}

// Check implements zapcore.Core.
func (w *warnings) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !w.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, w)
}

// Write implements zapcore.Core.
func (w *warnings) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range append(append([]zapcore.Field(nil), w.fields...), fields...) {
		field.AddTo(values)
	}
	if cause, ok := values.Fields["error"]; ok {
		w.app.complain("warning", fmt.Errorf("%s: %v", entry.Message, cause))
		return nil
	}
	w.app.complain("warning", fmt.Errorf("%s", entry.Message))
	return nil
}

// Sync implements zapcore.Core.
func (w *warnings) Sync() error { return nil }
