package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// app is one run of the program: what the process around it would have.
type app struct {
	environment    map[string]string
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // standard error is one

	databaseURL string // of the flag
	json        bool
}

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, environment map[string]string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{environment: environment, stdin: stdin, stdout: stdout,
		stderr: &lockedWriter{w: stderr}, terminal: isTerminal(stderr)}
	root := a.command()
	root.SetArgs(append([]string{}, args...)) // nil would be the process's own
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	// A mistake in the flags may keep the rest of them from being read.
	a.json = a.json || slices.Contains(args, "--json")
	a.complain("", err)
	return exitStatus(err)
}

const exitStatuses = `Exit status:
  0  done
  1  failed: the database, Pub/Sub or an output did not work, or an interrupt
  2  bad usage or bad input: nothing was written
  3  not found: an unknown event, rule, limit or cron definition, or an event that is refused
`

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "eventctl",
		Short: "Operate the event queue",
		Long: "eventctl operates the event queue: schema, events, rules, limits, history and cron definitions. It is\n" +
			"configured by the environment of the workers (docs/configuration.md); most commands need\n" +
			"DATABASE_URL only, those that publish notifications need PUBSUB_PROJECT_ID,\n" +
			"NOTIFIER=postgres or --no-notify.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          needsCommand,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpTemplate(root.HelpTemplate() + "\n" + exitStatuses)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write one JSON document instead of text")
	root.PersistentFlags().StringVar(&a.databaseURL, "database-url", "", "Postgres to use instead of DATABASE_URL (other users of the machine can see it)")
	root.AddCommand(
		a.migrateCommand(), a.emitCommand(),
		a.addRuleCommand(pauseWords()), a.liftRuleCommand(pauseWords()),
		a.addRuleCommand(blockWords()), a.liftRuleCommand(blockWords()), a.rulesCommand(),
		a.limitCommand(), a.runningCommand(),
		a.lsCommand(), a.showCommand(), a.statsCommand(), a.stuckCommand(), a.requeueCommand(),
		a.cronCommand(), a.logCommand(), a.retryCommand(), a.pruneCommand(),
	)
	return root
}

// group makes a command that only has commands below it.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: needsCommand}
	c.AddCommand(commands...)
	return c
}

func needsCommand(cmd *cobra.Command, _ []string) error {
	return fmt.Errorf("%s needs a command: see %s --help", cmd.Name(), cmd.CommandPath())
}
