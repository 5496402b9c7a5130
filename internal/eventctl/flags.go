package eventctl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
)

// require marks flags as required. It panics if a flag does not exist.
func require(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

// addChoice gives a command a flag with a few values, which the shell completes.
func addChoice(cmd *cobra.Command, value *string, name, preset, usage string, choices ...string) {
	cmd.Flags().StringVar(value, name, preset, usage+": "+strings.Join(choices, ", "))
	if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag exists already
	}
}

// checkChoice refuses a value that is none of the choices. It ignores case.
func checkChoice(flag, value string, choices ...string) error {
	if slices.Contains(choices, strings.ToLower(value)) {
		return nil
	}
	return badInput(fmt.Errorf("--%s %q is unknown: use %s", flag, value, strings.Join(choices, ", ")))
}

// checkGiven refuses flags that are given and empty. An unset variable of a script would
// otherwise change the meaning of a command.
func checkGiven(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return badInput(fmt.Errorf("--%s is empty", name))
		}
	}
	return nil
}

// maxPage is the largest --limit.
const maxPage = 10_000

// pageFlags are --limit and --after.
type pageFlags struct {
	limit int
	after int64
}

func addPage(cmd *cobra.Command) *pageFlags {
	p := &pageFlags{}
	addLimit(cmd, &p.limit)
	cmd.Flags().Int64Var(&p.after, "after", 0, "begin after the event with this `id`, the last one of the previous page")
	return p
}

func addLimit(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 50, fmt.Sprintf("show at most `n`, from 1 to %d", maxPage))
}

func checkLimit(limit int) error {
	if limit < 1 || limit > maxPage {
		return badInput(fmt.Errorf("--limit is %d: it must be from 1 to %d", limit, maxPage))
	}
	return nil
}

func (p *pageFlags) check() error {
	if err := checkLimit(p.limit); err != nil {
		return err
	}
	if p.after < 0 {
		return badInput(fmt.Errorf("--after is %d: event ids are positive", p.after))
	}
	return nil
}

// parseIDs reads the ids of events.
func parseIDs(args []string) ([]eventqueue.EventID, error) {
	ids := make([]eventqueue.EventID, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return nil, badInput(fmt.Errorf("%q is not the id of an event: ids are whole numbers from 1 on", arg))
		}
		ids[i] = eventqueue.EventID(id)
	}
	return ids, nil
}
