package setup

import (
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/internal/logkey"
)

// The fields that Google Cloud Logging takes out of a line and gives a meaning.
const (
	googleTrace   = "logging.googleapis.com/trace"
	googleSpan    = "logging.googleapis.com/spanId"
	googleSampled = "logging.googleapis.com/trace_sampled"
	googleLabels  = "logging.googleapis.com/labels"
)

// labelled are the fields that lines are found by in an index, as labels. They also stay
// where they are, for whoever reads the lines with other tools.
var labelled = []string{logkey.Event, logkey.Canvas, logkey.Handler}

// googleCore writes the fields that Google Cloud Logging knows: a trace context becomes its
// trace, its span and whether it is sampled, and what names an event its labels.
type googleCore struct {
	zapcore.Core
	project string
	context []zap.Field
}

// With implements zapcore.Core. The fields are written with each line, because a line may
// have only one object of labels.
func (c *googleCore) With(fields []zap.Field) zapcore.Core {
	return &googleCore{c.Core, c.project, slices.Concat(c.context, fields)}
}

// Check implements zapcore.Core.
func (c *googleCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *googleCore) Write(entry zapcore.Entry, fields []zap.Field) error {
	given := slices.Concat(c.context, fields)
	all := make([]zap.Field, 0, len(given)+3)
	var labels labels
	for _, field := range given {
		if slices.Contains(labelled, field.Key) {
			labels = append(labels, field)
		}
		if field.Key == logkey.Traceparent && c.project != "" {
			all = append(all, traceOf(field.String, c.project)...)
			continue
		}
		all = append(all, field)
	}
	if len(labels) > 0 {
		all = append(all, zap.Object(googleLabels, labels))
	}
	return c.Core.Write(entry, all)
}

// traceOf reads a W3C trace context: version, trace, span and flags.
func traceOf(parent, project string) []zap.Field {
	parts := strings.Split(parent, "-")
	if len(parts) < 4 || len(parts[3]) != 2 {
		return []zap.Field{zap.String(logkey.Traceparent, parent)}
	}
	// The lowest bit of the flags says that the trace is sampled.
	sampled := strings.ContainsRune("13579bdf", rune(parts[3][1]))
	return []zap.Field{zap.String(googleTrace, "projects/"+project+"/traces/"+parts[1]), zap.String(googleSpan, parts[2]), zap.Bool(googleSampled, sampled)}
}

// labels are fields as an object.
type labels []zap.Field

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l labels) MarshalLogObject(out zapcore.ObjectEncoder) error {
	for _, field := range l {
		field.AddTo(out)
	}
	return nil
}
