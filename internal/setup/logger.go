package setup

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger makes the logger of a program. Style json has the keys that Google
// Cloud Logging reads: severity, time and message.
func NewLogger(style, level string, w io.Writer) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil || at > zapcore.ErrorLevel {
		return nil, fmt.Errorf("configuration: LOG_LEVEL is %q: it must be debug, info, warn or error", level)
	}
	var encoder zapcore.Encoder
	switch style {
	case "json":
		encoder = zapcore.NewJSONEncoder(googleKeys())
	case "console":
		config := zap.NewDevelopmentEncoderConfig()
		config.EncodeDuration = zapcore.StringDurationEncoder
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return nil, fmt.Errorf("configuration: LOG_FORMAT is %q: it must be json or console", style)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), at)), nil
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
