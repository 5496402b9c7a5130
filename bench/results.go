package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"eventsv2/bench/contest"
	"eventsv2/bench/lab"
	"eventsv2/bench/ours"
	"eventsv2/bench/peer"
	"eventsv2/bench/report"
)

// report prints the results, and writes the page and the chart when they were
// asked for.
func (b *bench) report(ctx context.Context, took time.Duration) error {
	of := measures
	if b.growth {
		of = growthMeasures
	}
	results := b.figures.Results(of)
	fmt.Fprintf(b.out, "\n%d rounds in %s\n", b.rounds, took.Round(time.Second))
	for _, r := range results {
		fmt.Fprintln(b.out, r)
	}
	if b.write == "" {
		return nil
	}
	facts, err := b.facts(ctx, took)
	if err != nil {
		return err
	}
	return report.Write(b.write, b.page(), report.Run{Figures: b.figures, Results: results, Facts: facts})
}

// facts are what one has to know to judge the figures.
func (b *bench) facts(ctx context.Context, took time.Duration) ([]report.Fact, error) {
	version, err := b.lab.Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Postgres for its version: %w", err)
	}
	return append(report.Machine(),
		report.Fact{Name: "Postgres", Value: version},
		report.Fact{Name: "its settings", Value: serverSettings()},
		report.Fact{Name: "River", Value: report.Dependency("github.com/riverqueue/river")},
		report.Fact{Name: "our settings", Value: ours.Settings},
		report.Fact{Name: "River's settings", Value: peer.Settings},
		report.Fact{Name: "connections", Value: fmt.Sprintf("%d for each side", contest.Connections)},
		report.Fact{Name: "events", Value: fmt.Sprintf("%d of %d bytes in a run, %d in a large backlog", b.events, contest.ValueBytes, b.backlog)},
		report.Fact{Name: "rounds", Value: fmt.Sprintf("%d, in %s", b.rounds, took.Round(time.Second))},
		report.Fact{Name: "commit", Value: report.Commit()},
		report.Fact{Name: "date", Value: time.Now().UTC().Format("2 January 2006")},
	), nil
}

func serverSettings() string {
	var settings []string
	for _, s := range lab.Settings {
		settings = append(settings, s[0]+" "+s[1])
	}
	return strings.Join(settings, ", ")
}
