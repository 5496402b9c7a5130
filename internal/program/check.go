package program

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/cloudsql"
	"eventsv2/internal/printing"
	"eventsv2/service"
)

func checkCommand(environment map[string]string) *cobra.Command {
	check := &cobra.Command{
		Use:   "check [file]",
		Short: "Validate a handlers file (default: HANDLERS_FILE) without starting",
		Long: "check validates a handlers file (default: HANDLERS_FILE) without connecting to anything.\n" +
			"With --against it also reads the events that wait in a database, and fails if a worker with this file would\n" +
			"have no handler for some of them: run it before a deployment. It changes nothing.",
		Example: "  worker check handlers.yaml --against DATABASE_URL",
		Args:    cobra.MaximumNArgs(1),
	}
	against := check.Flags().String("against", "", "`database` whose waiting events have to have a handler: the variable that has its URL, or the URL")
	check.RunE = func(cmd *cobra.Command, args []string) error {
		path := append(args, environment["HANDLERS_FILE"])[0]
		if err := checkFile(cmd.OutOrStdout(), path); err != nil || !cmd.Flags().Changed("against") {
			return err
		}
		return checkAgainst(cmd.Context(), cmd.OutOrStdout(), environment, path, *against)
	}
	return check
}

func checkFile(out io.Writer, path string) error {
	if path == "" {
		return errNoHandlers
	}
	handlers, sources, err := service.CheckHandlersFile(path)
	switch {
	case err != nil:
		return err
	case sources > 0:
		_, err = fmt.Fprintf(out, "%s: ok, %d handlers, %d sources of webhooks\n", path, handlers, sources)
	default:
		_, err = fmt.Fprintf(out, "%s: ok, %d handlers\n", path, handlers)
	}
	return err
}

// checkAgainst finds waiting events without a handler in the file at path.
func checkAgainst(ctx context.Context, out io.Writer, environment map[string]string, path, against string) error {
	url := against
	if !strings.ContainsAny(against, ":=/") {
		if url = environment[against]; url == "" {
			return fmt.Errorf("--against %q: there is no such variable: give the URL of the database, or a variable that has it", against)
		}
	}
	connecting := maps.Clone(environment)
	if url != environment["DATABASE_URL"] { // these are of the database of that variable: another one must not get its password
		delete(connecting, "CLOUDSQL_INSTANCE")
		delete(connecting, "DATABASE_PASSWORD_FILE")
	}
	connecting["DATABASE_URL"] = url
	access, err := cloudsql.FromEnvironment(ctx, connecting)
	if err != nil {
		return err
	}
	fitness, err := service.HandlersFileFitness(ctx, path, url, access, pgsession.Schema(environment["EVENTS_SCHEMA"]))
	if err != nil {
		return err
	}
	return printFitness(out, fitness)
}

// printFitness prints the events that would not run; the error says that there are some.
func printFitness(out io.Writer, f inspect.Fitness) error {
	if len(f.Unfit) == 0 {
		_, err := fmt.Fprintf(out, "%s waiting: each has its handler\n", printing.Plural(f.Checked, "event"))
		return err
	}
	rows := [][]string{{"CANVAS", "HANDLER", "EVENTS", "FIRST", "PROBLEM"}}
	events := 0
	for _, u := range f.Unfit {
		problem := u.Problem
		if u.Unknown {
			problem = "no handler"
		}
		events += u.Events
		rows = append(rows, []string{u.Canvas.String(), printing.Printable(u.Handler.String()), strconv.Itoa(u.Events), u.First.String(), printing.Printable(problem)})
	}
	printing.Table(out, rows)
	atLeast := ""
	if f.More {
		atLeast = "at least "
	}
	return fmt.Errorf("%s%d of %s waiting would not run: keep their handlers, or edit or cancel these events first", atLeast, events, printing.Plural(f.Checked, "event"))
}
