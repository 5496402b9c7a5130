package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"eventsv2/test/command"
)

func main() { command.Main(run) }

func run(_ context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		return command.Fail("reruns", errors.New("name the directory with the files of gotestsum's --jsonfile"), command.ExitUsage, stderr)
	}
	files, err := filepath.Glob(filepath.Join(args[0], "*.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no file *.json, as gotestsum --jsonfile writes it", args[0])
	}
	if err != nil {
		return command.Fail("reruns", err, command.ExitFailed, stderr)
	}
	var again, final []string
	for _, name := range files {
		judged, err := judgeFile(name)
		if err != nil {
			return command.Fail("reruns", err, command.ExitFailed, stderr)
		}
		again, final = append(again, judged.again...), append(final, judged.final...)
	}
	// What fails again is in another run of its package.
	again, final = slices.Compact(slices.Sorted(slices.Values(again))), slices.Compact(slices.Sorted(slices.Values(final)))
	report(stdout, "FAILED BESIDE OTHERS, TRIED AGAIN:", again)
	report(stdout, "FAILED, AND TRYING IT AGAIN PROVES NOTHING:", final)
	if len(final) > 0 {
		return command.ExitFailed
	}
	return command.ExitOK
}

func report(stdout io.Writer, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	_, _ = fmt.Fprintln(stdout, head) // nowhere else to say it
	for _, line := range lines {
		_, _ = fmt.Fprintln(stdout, line)
	}
}

func judgeFile(name string) (verdict, error) {
	file, err := os.Open(name)
	if err != nil {
		return verdict{}, err
	}
	defer func() { _ = file.Close() }() // only read
	judged, err := judge(file)
	if err != nil {
		return verdict{}, fmt.Errorf("%s: %w", name, err)
	}
	return judged, nil
}
