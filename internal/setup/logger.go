package setup

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogConfig says how a program logs.
type LogConfig struct {
	// Style is json or console. JSON has the fields that Google Cloud Logging knows.
	Style string
	// Level is debug, info, warn or error: the least that is written.
	Level string
	// Project is the Google Cloud project of the traces; without one, lines have the trace
	// context as it came.
	Project string
}

// NewLogger makes the logger of a program.
func NewLogger(c LogConfig, w io.Writer) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(c.Level)
	if err != nil || at > zapcore.ErrorLevel {
		return nil, fmt.Errorf("configuration: LOG_LEVEL is %q: it must be debug, info, warn or error", c.Level)
	}
	out := zapcore.Lock(zapcore.AddSync(w))
	switch c.Style {
	case "json":
		return zap.New(&googleCore{Core: zapcore.NewCore(zapcore.NewJSONEncoder(googleKeys()), out, at), project: c.Project}), nil
	case "console":
		config := zap.NewDevelopmentEncoderConfig()
		config.EncodeDuration = zapcore.StringDurationEncoder
		return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), out, at)), nil
	default:
		return nil, fmt.Errorf("configuration: LOG_FORMAT is %q: it must be json or console", c.Style)
	}
}

func googleKeys() zapcore.EncoderConfig {
	config := zap.NewProductionEncoderConfig()
	config.LevelKey = "severity"
	config.TimeKey = "time"
	config.MessageKey = "message"
	config.StacktraceKey = "stack"
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	config.EncodeLevel = severity
	return config
}

// severity spells levels as Google Cloud Logging does.
func severity(level zapcore.Level, out zapcore.PrimitiveArrayEncoder) {
	switch level {
	case zapcore.WarnLevel:
		out.AppendString("WARNING")
	case zapcore.DPanicLevel, zapcore.PanicLevel, zapcore.FatalLevel:
		out.AppendString("CRITICAL")
	default:
		out.AppendString(level.CapitalString())
	}
}
