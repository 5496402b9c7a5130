package eventctl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue/inspect"
)

func documentation(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/eventctl.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestCommandsPageNamesEveryCommand holds docs/eventctl.md and the program together:
// every command that does something has an example there.
func TestCommandsPageNamesEveryCommand(t *testing.T) {
	t.Parallel()
	page := documentation(t)
	root := newRoot()
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

// TestCommandsPageNamesPublishingCommands: these commands need more than a database.
func TestCommandsPageNamesPublishingCommands(t *testing.T) {
	t.Parallel()
	list := regexp.MustCompile(`(?s)commands that publish notifications \((.*?)\)`).FindString(documentation(t))
	root := newRoot()
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

// TestDocumentsNameOnlyWhatExists takes every command apart that any page names, in an
// example or in a sentence.
func TestDocumentsNameOnlyWhatExists(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	named := regexp.MustCompile("(?m)^ *(?:\\$ )?eventctl (.*)$|`eventctl ([a-z-][^`]*)`")
	for _, page := range append(pages, "../../README.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			for _, problem := range problems(match[1] + match[2]) {
				t.Errorf("%s names %q: %s", filepath.Base(page), match[0], problem)
			}
		}
	}
}

// problems says which words of a command line do not exist.
func problems(words string) (found []string) {
	cmd := find(newRoot(), words)
	if !cmd.HasParent() && !strings.HasPrefix(words, "--") && !strings.HasPrefix(words, "completion") && !strings.HasPrefix(words, "COMMAND") {
		return []string{"there is no such command"}
	}
	for _, name := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(words, -1) {
		known := cmd.Flags().Lookup(name[1]) != nil || cmd.InheritedFlags().Lookup(name[1]) != nil
		if !known && name[1] != "help" && name[1] != "version" {
			found = append(found, cmd.CommandPath()+" has no flag --"+name[1])
		}
	}
	return found
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

func TestCommandsPageExplainsStatesAndExitStatuses(t *testing.T) {
	t.Parallel()
	page := documentation(t)
	for _, state := range inspect.States() {
		if !strings.Contains(page, "| "+string(state)+" | ") {
			t.Errorf("the page does not explain the state %s", state)
		}
	}
	for _, reason := range inspect.StuckReasons() {
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
