package view

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/operate"
)

// Counts counts the events of one handler in a minute, an hour or another time.
type Counts struct {
	Begins    time.Time            `json:"begins"`
	Canvas    *eventqueue.CanvasID `json:"canvas_id,omitempty" format:"uuid" doc:"Absent: these are of all canvases that have no counts of their own."`
	Module    string               `json:"module"`
	Name      string               `json:"name"`
	Emitted   int64                `json:"emitted"`
	Completed int64                `json:"completed"`
	Failed    int64                `json:"failed"`
	Retried   int64                `json:"retried"`
	Cancelled int64                `json:"cancelled"`
	WaitP50   *Seconds             `json:"wait_p50_seconds,omitempty" doc:"From due to start. Absent without any run, as the next three."`
	WaitP99   *Seconds             `json:"wait_p99_seconds,omitempty"`
	RunP50    *Seconds             `json:"run_p50_seconds,omitempty"`
	RunP99    *Seconds             `json:"run_p99_seconds,omitempty"`
	Pending   *int64               `json:"pending,omitempty" doc:"Events that had not ended at its end, or of an hour the highest number of its minutes. Absent: they were not counted, or, of a sum, not lately."`
	OldestDue *Seconds             `json:"oldest_due_seconds,omitempty" doc:"For how long the oldest due event that no worker ran had been due. Absent: there was none."`
	CountedAt *time.Time           `json:"counted_at,omitempty" doc:"Of a sum: the minute in which what is pending was counted."`
}

// CountsPage has all counts of some handlers.
type CountsPage struct {
	Items []Counts `json:"items" nullable:"false" doc:"By time, module and name. All counts of a handler are on one page."`
	Next  string   `json:"next,omitempty" doc:"Of further handlers: after of the next request. Absent at the end."`
}

// CountsOf are the counts of a handler in a time.
func CountsOf(m inspect.Minute) Counts {
	return Counts{Begins: m.Begins.UTC(), Canvas: canvasOrAll(m.Canvas), Module: m.Module, Name: m.Name,
		Emitted: m.Emitted, Completed: m.Completed, Failed: m.Failed, Retried: m.Retried, Cancelled: m.Cancelled,
		WaitP50: Quantile(m.Wait, 0.5), WaitP99: Quantile(m.Wait, 0.99), RunP50: Quantile(m.Run, 0.5), RunP99: Quantile(m.Run, 0.99),
		Pending: m.Pending, OldestDue: secondsOf(m.OldestDue), CountedAt: Time(m.CountedAt)}
}

// Quantile is a quantile of a histogram; nil of an empty one.
func Quantile(h minutes.Histogram, q float64) *Seconds {
	if h.Count() == 0 {
		return nil
	}
	return new(Seconds(h.Quantile(q).Seconds()))
}

// Stats counts the events of one handler as they are now.
type Stats struct {
	Canvas    eventqueue.CanvasID     `json:"canvas_id"`
	Module    string                  `json:"module"`
	Name      string                  `json:"name"`
	Depth     int64                   `json:"depth"` // of all states
	States    map[inspect.State]int64 `json:"states"`
	OldestDue *Seconds                `json:"oldest_due_seconds,omitempty"`
	Failed    int64                   `json:"failed"`
	Cancelled int64                   `json:"cancelled"`
	Rules     []operate.RuleType      `json:"rules"`
}

// StatsOf counts the events of a handler.
func StatsOf(h inspect.HandlerStats) Stats {
	s := Stats{Canvas: h.Canvas, Module: h.Module, Name: h.Name, Depth: h.Depth, Failed: h.Failed, Cancelled: h.Cancelled,
		States: map[inspect.State]int64{}, Rules: append([]operate.RuleType{}, h.Rules...)}
	for _, state := range inspect.States() {
		s.States[state] = h.ByState[state]
	}
	if h.HasDue {
		s.OldestDue = secondsOf(&h.OldestBy)
	}
	return s
}
