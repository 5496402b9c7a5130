package service_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/service"
)

type place struct{ canvas, name string }

func (p place) MarshalLogObject(out zapcore.ObjectEncoder) error {
	out.AddString("name", p.name)
	out.AddString("canvas", p.canvas)
	return nil
}

// TestLogLinesReachASlogHandler with their levels, fields and context.
func TestLogLinesReachASlogHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	handler := slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			if time.Since(a.Value.Time()) > time.Hour {
				t.Errorf("a line of %s", a.Value.Time())
			}
			return slog.Attr{}
		}
		return a
	}})
	log := service.NewSlogLogger(handler)
	log.Debug("below the handler's level")
	log.Info("i", zap.Int("count", 2), zap.Duration("after", time.Second), zap.Error(errors.New("e")))
	log.With(zap.String("event_id", "7")).Warn("w", zap.Object("place", place{"c", "n"}), zap.Strings("all", []string{"a", "b"}))
	log.Error("e", zap.Any("nothing", nil))
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	want := `{"level":"INFO","msg":"i","count":2,"after":1000000000,"error":"e"}
{"level":"WARN","msg":"w","event_id":"7","place":{"canvas":"c","name":"n"},"all":["a","b"]}
{"level":"ERROR","msg":"e","nothing":null}
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestZapPanicLevelIsAboveError for a handler of slog.
func TestZapPanicLevelIsAboveError(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := service.NewSlogLogger(slog.NewTextHandler(&out, nil))
	log.DPanic("p")
	if !strings.Contains(out.String(), "level=ERROR+4 msg=p") {
		t.Errorf("got %s", &out)
	}
}
