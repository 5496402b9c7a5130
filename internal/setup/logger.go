package setup

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

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
	out := zapcore.Lock(withoutControls{zapcore.AddSync(w)})
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

// withoutControls escapes the control characters that zap leaves as they are, DEL and U+0080 to U+009F: a terminal may take them, such
// as U+009B, for the beginning of a sequence. In both styles they only stand in texts, where JSON spells them so.
type withoutControls struct{ zapcore.WriteSyncer }

func (w withoutControls) Write(line []byte) (int, error) {
	if !hasControls(line) {
		return w.WriteSyncer.Write(line)
	}
	var escaped []byte
	for at := 0; at < len(line); {
		r, size := utf8.DecodeRune(line[at:])
		if isC1(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = append(escaped, line[at:at+size]...)
		}
		at += size
	}
	_, err := w.WriteSyncer.Write(escaped)
	return len(line), err
}

func isC1(r rune) bool { return r >= 0x7f && r <= 0x9f }

// hasControls reports whether a line may have such a character: those above DEL begin with the byte 0xc2.
func hasControls(line []byte) bool {
	return bytes.IndexByte(line, 0xc2) >= 0 || bytes.IndexByte(line, 0x7f) >= 0
}
