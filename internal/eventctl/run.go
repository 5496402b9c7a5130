package eventctl

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"eventsv2/internal/buildinfo"
	"eventsv2/internal/printing"
)

// Run runs the program and returns its exit status. When ctx ends it ends as well, between
// two batches.
func Run(ctx context.Context, args []string, environment map[string]string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{environment: environment, stdin: stdin, Printer: printing.New("eventctl", stdout, stderr)}
	root := p.rootCommand()
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(p.Stderr())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	// After a mistake in one flag, --json may not have been read.
	p.JSON = p.JSON || slices.Contains(args, "--json")
	p.Error(err)
	return exitStatus(err)
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "eventctl",
		Short: "Operate the event queue",
		Long: "Operate the event queue: events, rules, limits, history, cron definitions and the schema.\n" +
			"It is configured by the environment of the workers (docs/configuration.md); most commands need\n" +
			"DATABASE_URL only, those that publish notifications need PUBSUB_PROJECT_ID,\n" +
			"NOTIFIER=postgres or --no-notify.\n\n" +
			"The verbs mean the same everywhere: list lists, show shows one, set adds or replaces, remove\n" +
			"removes. A verb without a noun is about events or their handlers.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          needsCommand,
		Version:       buildinfo.Version(),

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return p.resolveCanvas(cmd) },
	}
	root.SetVersionTemplate(buildinfo.Template)
	root.SetHelpTemplate(root.HelpTemplate() + "\n" + exitStatuses)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.PersistentFlags().BoolVar(&p.JSON, "json", false, "write one JSON document instead of text")
	root.PersistentFlags().StringVar(&p.databaseURL, "database-url", "", "Postgres to use instead of DATABASE_URL (other users of the machine can see it)")
	for _, topic := range commands() {
		root.AddGroup(&cobra.Group{ID: topic.title, Title: topic.title + ":"})
		for _, command := range topic.commands {
			cmd := command(p)
			cmd.GroupID = topic.title
			root.AddCommand(cmd)
		}
	}
	return root
}
