package main

import (
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], ".", os.Stdout, os.Stderr)) }

// run is the program without its process: it returns the exit status.
func run(args []string, dir string, stdout, stderr io.Writer) int {
	if len(args) != 1 || args[0] == "" {
		_, _ = fmt.Fprintln(stderr, "setmodule: give the new module path: make module MODULE=github.com/you/eventsv2")
		return 2
	}
	changed, err := rewrite(dir, args[0])
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "setmodule:", err)
		return 1
	}
	_, _ = fmt.Fprintf(stdout, "%d files changed: the module is %s; read the difference before you commit it\n", changed, args[0])
	return 0
}
