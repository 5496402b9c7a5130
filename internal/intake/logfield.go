package intake

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// key is the field that Google Cloud Logging takes out of a line.
const key = "httpRequest"

// most is how much of a text of the sender is logged.
const most = 200

// LogField describes a request that was answered with a status after some time. It has the path,
// and no query, which may hold secrets.
func LogField(r *http.Request, status int, took time.Duration) zap.Field {
	return zap.Object(key, &described{r, status, took})
}

type described struct {
	*http.Request
	status int
	took   time.Duration
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (d *described) MarshalLogObject(out zapcore.ObjectEncoder) error {
	out.AddString("requestMethod", short(d.Method))
	out.AddString("requestUrl", short(d.URL.Path))
	out.AddInt("status", d.status)
	if agent := d.UserAgent(); agent != "" {
		out.AddString("userAgent", short(agent))
	}
	if host, _, err := net.SplitHostPort(d.RemoteAddr); err == nil {
		out.AddString("remoteIp", host)
	}
	out.AddString("protocol", d.Proto)
	out.AddString("latency", strconv.FormatFloat(d.took.Seconds(), 'f', 6, 64)+"s")
	return nil
}

func short(text string) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
