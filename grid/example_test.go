package grid_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/grid"
	"eventsv2/service"
)

// Issue is an issue of a tracker.
type Issue struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
}

// Tracker is a service: GitLab or GitHub, by what the definition injects.
type Tracker interface {
	Open(ctx context.Context, project string) ([]Issue, error)
}

// Fetch gets the open issues of a project.
type (
	FetchInputs struct {
		Project string `grid:"project,event"`
	}
	FetchParams struct {
		Limit int `grid:"limit,optional"`
	}
	FetchServices struct {
		Source Tracker `grid:"source"`
	}
)

func fetch(ctx context.Context, call grid.Call[FetchInputs, FetchParams, FetchServices]) ([]Issue, error) {
	issues, err := call.Services.Source.Open(ctx, call.Inputs.Project)
	if err != nil {
		return nil, err // the run is tried again; completed actions do not run again
	}
	if len(issues) == 0 {
		return nil, grid.ErrSkip // nothing to report: publish does not run
	}
	if n := call.Params.Limit; n > 0 && n < len(issues) {
		issues = issues[:n]
	}
	return issues, nil
}

// Publish sends a report.
type (
	Layout struct {
		Title string `json:"title"`
	}
	PublishInputs struct {
		Issues []Issue `grid:"issues,action"`
		Layout Layout  `grid:"layout,static"`
	}
	PublishServices struct {
		Channel Channel `grid:"channel"`
	}
)

// Channel is where reports go. It ignores a key that it has had already.
type Channel interface {
	Post(ctx context.Context, key, text string) error
}

func publish(ctx context.Context, call grid.Call[PublishInputs, grid.None, PublishServices]) (grid.None, error) {
	text := fmt.Sprintf("%s: %d", call.Inputs.Layout.Title, len(call.Inputs.Issues))
	return grid.None{}, call.Services.Channel.Post(ctx, call.Key(), text)
}

const definitionOfReport = `grid: report
actions:
  issues:
    use: fetch
    inject:
      source: gitlab
    params:
      limit: 20
    inputs:
      project: {origin: event}
  send:
    use: publish
    inject:
      channel: slack
    inputs:
      issues:
        origin: action
        action: issues
      layout:
        origin: static
        static: {title: Open issues}
`

// GitLab and Slack stand for real clients.
type (
	GitLab struct{}
	Slack  struct{}
)

// Open implements Tracker.
func (GitLab) Open(context.Context, string) ([]Issue, error) {
	return []Issue{{17, "On Bells"}, {18, "On Doors"}}, nil
}

// Post implements Channel.
func (Slack) Post(_ context.Context, _, text string) error {
	fmt.Println(text)
	return nil
}

func register() (*grid.Actions, error) {
	actions := grid.NewActions()
	return actions, errors.Join(
		grid.Register(actions, "fetch", fetch, grid.Timeout(30*time.Second)),
		grid.Register(actions, "publish", publish, grid.Cast("layout", grid.Strict[Layout])),
	)
}

// The definition above, and what it comes to.
func ExampleGrid_Order() {
	actions, err := register()
	if err != nil {
		log.Fatal(err)
	}
	report, err := grid.Parse("report.yaml", []byte(definitionOfReport), actions, grid.Services{"gitlab": GitLab{}, "slack": Slack{}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Handler(), report.Order())
	// Output: GRID/report/_ [issues send]
}

// From a definition to a run.
func Example() {
	register := func(s *service.Service) error {
		actions, err := register()
		if err != nil {
			return err
		}
		report, err := grid.Load("report.yaml", actions, grid.Services{"gitlab": GitLab{}, "slack": Slack{}})
		if err != nil {
			return err // all mistakes, each with its line
		}
		runner, err := grid.NewRunner(s.Pool(), grid.Config{Policy: eventqueue.Policy{Timeout: 10 * time.Minute}})
		if err != nil {
			return err
		}
		if err := runner.Register(s, report); err != nil {
			return err
		}

		// Or wherever else events come from: a webhook, the handler of any other event.
		tracked := func(ctx context.Context, run *eventqueue.Run) error {
			event, err := report.NewInput(run.Canvas, "report of project 7", "project-7")
			if err != nil {
				return eventqueue.Permanent(err)
			}
			_, err = s.Emit(ctx, event)
			return err
		}
		return s.Register(eventqueue.HandlerKey{Name: "tracked"}, eventqueue.HandlerFunc(tracked), eventqueue.Policy{Timeout: time.Minute})
	}
	if err := service.Run(context.Background(), service.Config{DatabaseURL: os.Getenv("DATABASE_URL")}, register); err != nil {
		log.Print(err)
	}
}

// All mistakes in a definition are reported together, each with its place.
func ExampleParse() {
	actions, err := register()
	if err != nil {
		log.Fatal(err)
	}
	_, err = grid.Parse("report.yaml", []byte(`grid: report
actions:
  issues:
    use: fetch
    inject: {source: github}
    inputs:
      project: {origin: action, action: send}
  send:
    use: publish
    inject: {channel: slack}
    inputs:
      issues: {origin: action, action: issue}
      layout: {origin: static, static: {titel: Open issues}}
`), actions, grid.Services{"gitlab": GitLab{}, "slack": Slack{}})
	fmt.Println(err)
	// Output:
	// report.yaml:5: actions.issues.inject.source: there is no service "github": there are gitlab, slack
	// report.yaml:7: actions.issues.inputs.project.origin: the Go action fetch does not take project from action: it takes it from event
	// report.yaml:12: actions.send.inputs.issues.action: there is no action "issue" in this grid: there are issues, send
	// report.yaml:13: actions.send.inputs.layout.static: it cannot be made into a grid_test.Layout: unknown field "titel"
}

// In a program without a service.
func ExampleSweeper() {
	sweep := func(ctx context.Context, pool *pgxpool.Pool) error {
		sweeper, err := grid.NewSweeper(pool, grid.SweeperConfig{})
		if err != nil {
			return err
		}
		return sweeper.Run(ctx) // until ctx ends
	}
	_ = sweep
}
