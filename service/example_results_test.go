package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/service"
)

// Report is the result of a run of report.
type Report struct {
	Rows int    `json:"rows"`
	File string `json:"file"`
}

// report says how far it is, and sets a result.
func report(ctx context.Context, run *eventqueue.Run) error {
	const pages = 4
	for page := range pages {
		_ = run.Progress(float64(page)/pages, fmt.Sprintf("page %d of %d", page+1, pages))
		if err := write(ctx, page); err != nil {
			return err
		}
	}
	return run.SetResult(Report{Rows: 7, File: "reports/7.csv"})
}

// ask emits the event, and waits for its result.
func ask(ctx context.Context, s *service.Service) (r Report, err error) {
	id, err := s.Emit(ctx, eventqueue.NewEvent{Name: "report", Value: json.RawMessage(`{}`)})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	outcome, err := s.Await(ctx, id)
	if err != nil {
		return r, err
	}
	return r, outcome.Decode(&r)
}
