// Command deploycheck checks the files in deploy/ without a cloud, and says what it has looked at.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"eventsv2/test/deploycheck/check"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx)
	stop()
	os.Exit(status)
}

func run(ctx context.Context) int {
	const root = "../.."
	report, programs := check.Files(root)
	bin, err := os.MkdirTemp("", "deploycheck-")
	if err == nil {
		defer os.RemoveAll(bin)
		err = check.Run(ctx, report, root, bin, programs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy-check:", err)
		return 1
	}
	for _, problem := range report.Problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	fmt.Println(report.Summary())
	if len(report.Problems) > 0 {
		return 1
	}
	return 0
}
