package view

import (
	"fmt"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/internal/humantime"
)

// ConcurrencyTarget is the target of a concurrency limit: of module with name, ordering_key and every_key one, or none
// for the canvas.
type ConcurrencyTarget struct {
	Canvas      eventqueue.CanvasID `json:"canvas_id" format:"uuid"`
	Module      string              `json:"module,omitempty" minLength:"1" maxLength:"255"`
	Name        string              `json:"name,omitempty" minLength:"1" maxLength:"255"`
	OrderingKey string              `json:"ordering_key,omitempty" minLength:"1" maxLength:"255" doc:"One ordering key."`
	EveryKey    bool                `json:"every_key,omitempty" doc:"Each ordering key that has no limit of its own."`
}

// ConcurrencyLimit is how many events may run at once.
type ConcurrencyLimit struct {
	ConcurrencyTarget
	MaxRunning int `json:"max_running" minimum:"1" maximum:"2147483647" doc:"How many events may run at once."`
}

// ConcurrencyLimitChange is the result of setting or removing a concurrency limit.
type ConcurrencyLimitChange struct {
	ConcurrencyTarget
	MaxRunning int  `json:"max_running,omitempty" doc:"Absent of one that was removed."`
	Changed    bool `json:"changed" doc:"False: there was none to be removed."`
}

// ConcurrencyLimitOf is a concurrency limit.
func ConcurrencyLimitOf(l operate.ConcurrencyLimit) ConcurrencyLimit {
	return ConcurrencyLimit{ConcurrencyTarget{l.Canvas, l.Module, l.Name, l.Key, l.EveryKey}, l.Max}
}

// ConcurrencyLimitChangeOf is a change of a limit. One that was removed has no Max.
func ConcurrencyLimitChangeOf(l operate.ConcurrencyLimit, changed bool) ConcurrencyLimitChange {
	return ConcurrencyLimitChange{ConcurrencyLimitOf(l).ConcurrencyTarget, l.Max, changed}
}

// Limit is the limit of a target, without its Max.
func (t ConcurrencyTarget) Limit() operate.ConcurrencyLimit {
	return operate.ConcurrencyLimit{Canvas: t.Canvas, Module: t.Module, Name: t.Name, Key: t.OrderingKey, EveryKey: t.EveryKey}
}

// String names what the limit is for.
func (t ConcurrencyTarget) String() string { return t.Limit().String() }

// LimitInUse is a concurrency limit with the events under it.
type LimitInUse struct {
	ConcurrencyLimit
	Admitted, Waiting int
}

// LimitInUseOf is a limit with the events under it.
func LimitInUseOf(l inspect.LimitInUse) LimitInUse {
	return LimitInUse{ConcurrencyLimitOf(l.ConcurrencyLimit), l.Admitted, l.Waiting}
}

// RateLimit is how many events may begin per minute and day.
type RateLimit struct {
	Canvas    eventqueue.CanvasID `json:"canvas_id" format:"uuid"`
	Module    string              `json:"module,omitempty" minLength:"1" maxLength:"255" doc:"Absent, with name: the whole canvas."`
	Name      string              `json:"name,omitempty" minLength:"1" maxLength:"255"`
	PerMinute int                 `json:"per_minute,omitempty" minimum:"0" maximum:"1000000000" doc:"0 is no such limit."`
	PerDay    int                 `json:"per_day,omitempty" minimum:"0" maximum:"1000000000"`
	Mode      ratelimit.Mode      `json:"mode,omitempty" enum:"exact,approximate" default:"exact"`
}

// RateStatus is a rate limit with what was counted of it.
type RateStatus struct {
	RateLimit
	MinuteUsed int64 `json:"minute_used"`
	DayUsed    int64 `json:"day_used"`
	Waiting    int64 `json:"waiting" doc:"About how many events wait for a later minute or day."`

	// Minute and Day are the two windows.
	Minute Window `json:"-"`
	Day    Window `json:"-"`
}

// RateLimitChange is the result of setting, removing or releasing a rate limit.
type RateLimitChange struct {
	RateLimit
	Changed  bool `json:"changed" doc:"False: there was none to be removed, or nothing waited for it."`
	Notified int  `json:"notified" doc:"Events that a rate limit had put off, and that are tried now."`
}

// RateLimitOf is a rate limit.
func RateLimitOf(l operate.RateLimit) RateLimit {
	return RateLimit{l.Canvas, l.Module, l.Name, l.PerMinute, l.PerDay, l.Mode}
}

// RateStatusOf is a rate limit with what was counted of it.
func RateStatusOf(l operate.RateStatus) RateStatus {
	return RateStatus{RateLimitOf(l.RateLimit), l.MinuteUsed, l.DayUsed, l.Waiting,
		Window{l.MinuteUsed, int64(l.PerMinute), humantime.Span(l.MinuteLeft)}, Window{l.DayUsed, int64(l.PerDay), humantime.Span(l.DayLeft)}}
}

// Scope is the handler that the limit is for, or the whole canvas.
func (l RateLimit) Scope() eventqueue.Scope {
	return eventqueue.Scope{Canvas: l.Canvas, Module: l.Module, Name: l.Name}
}

// Limit is the limit as it is set.
func (l RateLimit) Limit() operate.RateLimit {
	return operate.RateLimit{Scope: l.Scope(), PerMinute: l.PerMinute, PerDay: l.PerDay, Mode: l.Mode}
}

// Of names the scope of the limit.
func (l RateLimit) Of() string {
	if l.Scope().WholeCanvas() {
		return "canvas " + l.Canvas.String()
	}
	return l.Scope().String()
}

// Rates describes the limit.
func (l RateLimit) Rates() (text string) {
	if l.PerMinute > 0 {
		text += fmt.Sprintf(", %d per minute", l.PerMinute)
	}
	if l.PerDay > 0 {
		text += fmt.Sprintf(", %d per day", l.PerDay)
	}
	return text + ", " + string(l.Mode)
}

// Window is the use of a window of a rate limit; Most is 0 where there is no such limit.
type Window struct {
	Used, Most int64
	Ends       string
}

// String describes the use of the window; "" without a limit.
func (w Window) String() string {
	if w.Most == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", w.Used, w.Most)
}

// Full reports whether nothing more begins in the window.
func (w Window) Full() bool { return w.Most > 0 && w.Used >= w.Most }

// High is from where on the window is nearly full.
func (w Window) High() int64 { return w.Most * 9 / 10 }

// Shown is the part of the window that is used as a bar shows it.
func (w Window) Shown() int64 { return min(w.Used, w.Most) }

// Part is which part of the fuller window is used.
func (l RateStatus) Part() (part float64) {
	for _, w := range []Window{l.Minute, l.Day} {
		if w.Most > 0 {
			part = max(part, float64(w.Used)/float64(w.Most))
		}
	}
	return part
}
