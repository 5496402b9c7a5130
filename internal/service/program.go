package service

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// Execute runs a command line and returns the exit status of its process: 0, or
// 1 after an error, which it prints with the program's name.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err) // nowhere else to say it
		return 1
	}
	return 0
}

// Setup reads the configuration and makes the logger that it asks for.
func Setup(environment map[string]string, logs io.Writer) (Config, *zap.Logger, error) {
	config, err := Load(environment)
	if err != nil {
		return config, nil, err
	}
	log, err := NewLogger(config.LogStyle, config.LogLevel, logs)
	return config, log, err
}
