package eventctl

import (
	"fmt"

	"github.com/spf13/cobra"
)

// command makes a command of a program.
type command func(p *program) *cobra.Command

// commands lists all commands of eventctl by topic. A new one is a file with a function
// that makes it, and its line here.
func commands() []topic {
	return []topic{
		{"Events", []command{emitCommand, findCommand, listCommand, showCommand, explainCommand, treeCommand, statsCommand, topCommand, uiCommand, stuckCommand, requeueCommand, retryCommand, replayCommand, cancelCommand, deleteCommand, editCommand}},
		{"Handlers", append(ruleCommands(), holdCommand, unholdCommand,
			noun("rule", "Show the rules that hold handlers back", listRulesCommand),
			noun("limit", "Limit how many events run", rateLimits, concurrencyLimits),
		)},
		{"History and schedules", []command{
			noun("log", "List and delete the history of events that have ended", listLogCommand, logGroupsCommand, pruneLogCommand, deleteLogCommand),
			noun("audit", "Show what operators changed", listAuditCommand),
			noun("operation", "Show changes of many events", listOperationsCommand, showOperationCommand),
			noun("cron", "Manage cron definitions",
				listCronCommand, showCronCommand, previewCronCommand, setCronCommand, applyCronCommand, removeCronCommand, enableCronCommand, disableCronCommand),
		}},
		{"The database", []command{
			noun("token", "Manage the tokens of the HTTP API and the dashboard", createTokenCommand, listTokensCommand, revokeTokenCommand),
			serveCommand,
			noun("canvas", "Manage the names of canvases", listCanvasesCommand, nameCanvasCommand, unnameCanvasCommand),
			noun("webhook", "Show what sources of webhooks receive", listWebhooksCommand),
			noun("worker", "Show the workers of the database", listWorkersCommand),
			noun("settings", "Show and change what all programs of a database share", showSettingsCommand, setSettingCommand, finalizeSettingsCommand),
			noun("migrate", "Change or show the database schema",
				migrateUpCommand, migrateDownCommand, migrateStatusCommand, migrateSQLCommand, migrateRolesCommand),
		}},
	}
}

// rateLimits are the commands of limit rate.
func rateLimits(p *program) *cobra.Command {
	return noun("rate", "Limit how many events may begin per minute and per day",
		listRateLimitsCommand, setRateLimitCommand, removeRateLimitCommand, releaseRateLimitCommand)(p)
}

// concurrencyLimits are the commands of limit concurrency.
func concurrencyLimits(p *program) *cobra.Command {
	return noun("concurrency", "Limit how many events may run at once",
		listConcurrencyLimitsCommand, setConcurrencyLimitCommand, removeConcurrencyLimitCommand)(p)
}

// topic is a heading of the help with its commands.
type topic struct {
	title    string
	commands []command
}

// noun makes a command that only groups other commands.
func noun(name, short string, verbs ...command) command {
	return func(p *program) *cobra.Command {
		cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: needsCommand}
		for _, verb := range verbs {
			cmd.AddCommand(verb(p))
		}
		return cmd
	}
}

func needsCommand(cmd *cobra.Command, _ []string) error {
	return fmt.Errorf("%s needs a command: see %s --help", cmd.CommandPath(), cmd.CommandPath())
}
