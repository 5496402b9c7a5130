package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/pgstore"
)

func documentation(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/eventctl.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestThePageNamesEveryCommand holds docs/eventctl.md and the program together:
// every command that does something has an example there.
func TestThePageNamesEveryCommand(t *testing.T) {
	t.Parallel()
	page := documentation(t)
	root := (&app{}).command()
	for _, path := range commandPaths() {
		cmd, _, err := root.Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		if !cmd.HasSubCommands() && !strings.Contains(page, "    "+path) {
			t.Errorf("the page has no example of %q", path)
		}
	}
}

// TestThePageNamesWhatPublishes: these commands need more than a database.
func TestThePageNamesWhatPublishes(t *testing.T) {
	t.Parallel()
	list := regexp.MustCompile(`(?s)commands that publish notifications \((.*?)\)`).FindString(documentation(t))
	root := (&app{}).command()
	for _, path := range commandPaths() {
		cmd, _, err := root.Find(strings.Fields(path)[1:])
		if err != nil {
			t.Fatal(err)
		}
		name := "`" + strings.TrimPrefix(path, "eventctl ") + "`"
		if publishes := cmd.Flags().Lookup("no-notify") != nil; publishes != strings.Contains(list, name) {
			t.Errorf("%s publishes: %t; the page says %s", name, publishes, list)
		}
	}
}

// TestThePageNamesOnlyWhatExists takes every example apart.
func TestThePageNamesOnlyWhatExists(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`--([a-z-]+)`)
	examples := regexp.MustCompile(`(?m)^    eventctl (.*)$`).FindAllStringSubmatch(documentation(t), -1)
	if len(examples) == 0 {
		t.Fatal("the page has no examples")
	}
	for _, example := range examples {
		cmd := find((&app{}).command(), example[1])
		if cmd.HasSubCommands() {
			t.Errorf("%q is no command", example[0])
		}
		for _, name := range flag.FindAllStringSubmatch(example[1], -1) {
			if cmd.Flags().Lookup(name[1]) == nil && cmd.InheritedFlags().Lookup(name[1]) == nil {
				t.Errorf("%q: %s has no flag --%s", example[0], cmd.CommandPath(), name[1])
			}
		}
	}
}

// find follows the words of an example as far as they are commands.
func find(cmd *cobra.Command, words string) *cobra.Command {
	for word := range strings.FieldsSeq(words) {
		next, _, err := cmd.Find([]string{word})
		if err != nil || next == cmd {
			break
		}
		cmd = next
	}
	return cmd
}

func TestThePageExplainsStatesAndExitStatuses(t *testing.T) {
	t.Parallel()
	page := documentation(t)
	for _, state := range pgstore.EventStates() {
		if !strings.Contains(page, "| "+string(state)+" | ") {
			t.Errorf("the page does not explain the state %s", state)
		}
	}
	for _, reason := range pgstore.StuckReasons() {
		if !strings.Contains(page, "| "+string(reason)+" | ") {
			t.Errorf("the page does not explain the reason %s", reason)
		}
	}
	for _, status := range []string{"| 0 | done", "| 1 | failed", "| 2 | bad usage or bad input", "| 3 | not found"} {
		if !strings.Contains(page, status) {
			t.Errorf("the page lacks %q", status)
		}
		parts := strings.Split(status, " | ")
		if !strings.Contains(exitStatuses, strings.Trim(parts[0], "| ")+"  "+parts[1]) {
			t.Errorf("the help lacks %q", status)
		}
	}
}
