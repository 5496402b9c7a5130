package main

import (
	"context"
	"io"
	"os"

	"eventsv2/test/command"
)

func main() {
	command.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		if os.Getenv(roleVariable) == roleLibrary {
			return runLibrary(ctx, stdout, stderr)
		}
		return run(ctx, args, stdout, stderr)
	})
}
