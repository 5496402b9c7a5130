package setup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"eventsv2/internal/buildinfo"
)

// Execute runs a command line and returns the exit status of its process: 0, or
// 1 after an error, which it prints with the program's name.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Version = buildinfo.Version()
	root.SetVersionTemplate(buildinfo.Template)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err) // an error here cannot be reported
		return 1
	}
	return 0
}

// UnlessStopped returns err, or nil if err only means that ctx has ended: a program that is
// stopped before it has begun has not failed.
func UnlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
