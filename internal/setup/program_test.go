package setup_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/internal/buildinfo"
	"eventsv2/internal/setup"
)

// TestEveryProgramHasAVersionAndCompletion: also one without commands.
func TestEveryProgramHasAVersionAndCompletion(t *testing.T) {
	t.Parallel()
	program := func(commands ...*cobra.Command) *cobra.Command {
		root := &cobra.Command{Use: "tool", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
		root.AddCommand(commands...)
		return root
	}
	check := &cobra.Command{Use: "check", RunE: func(*cobra.Command, []string) error { return nil }}
	for args, want := range map[string]string{"--version": "tool " + buildinfo.Version() + "\n", "completion bash": "# bash completion V2 for tool",
		"completion zsh": "#compdef tool", "completion fish": "# fish completion for tool"} {
		for _, root := range []*cobra.Command{program(), program(check)} {
			var stdout, stderr strings.Builder
			if status := setup.Execute(t.Context(), root, strings.Fields(args), &stdout, &stderr); status != 0 || !strings.Contains(stdout.String(), want) {
				t.Errorf("tool %s: exit status %d, stderr %q, stdout without %q:\n%s", args, status, &stderr, want, &stdout)
			}
		}
	}
}
