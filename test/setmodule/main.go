package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], ".", os.Stdout, os.Stderr)) }

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, dir string, stdout, stderr io.Writer) int {
	taking := len(args) == 2 && args[0] == "take" && args[1] != ""
	if !taking && (len(args) != 1 || args[0] == "" || args[0] == "take") {
		_, _ = fmt.Fprintln(stderr, "setmodule: give the new module path: make module MODULE=github.com/you/eventsv2,\n"+
			"or the version to take, after git fetch: make take VERSION=original/main")
		return 2
	}
	said, err := do(ctx, dir, args, taking)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "setmodule:", err)
		return 1
	}
	_, _ = fmt.Fprintln(stdout, said)
	return 0
}

func do(ctx context.Context, dir string, args []string, taking bool) (said string, err error) {
	if taking {
		return takeVersion(ctx, dir, args[1])
	}
	changed, err := rewrite(dir, args[0])
	return fmt.Sprintf("%d files changed: the module is %s; read the difference before you commit it", changed, args[0]), err
}
