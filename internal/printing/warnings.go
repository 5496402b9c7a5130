package printing

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger returns a logger that prints entries of level warning and above as warnings of the
// program.
func (p *Printer) Logger() *zap.Logger { return zap.New(&warnings{printer: p}) }

// warnings is a zap core that turns log entries into warnings on standard error. It is
// safe for concurrent use.
type warnings struct {
	printer *Printer
	fields  []zapcore.Field
}

// Enabled implements zapcore.Core.
func (w *warnings) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (w *warnings) With(fields []zapcore.Field) zapcore.Core {
	return &warnings{w.printer, append(append([]zapcore.Field(nil), w.fields...), fields...)}
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
		w.printer.Warning(fmt.Errorf("%s: %v", entry.Message, cause))
		return nil
	}
	w.printer.Warning(fmt.Errorf("%s", entry.Message))
	return nil
}

// Sync implements zapcore.Core.
func (w *warnings) Sync() error { return nil }
