package eventctl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"eventsv2/eventqueue"
)

// addAttributes gives a command --attribute, any number of times.
func addAttributes(cmd *cobra.Command, pairs *[]string, usage string) {
	cmd.Flags().StringArrayVar(pairs, "attribute", nil, usage)
}

// parseAttributes reads the values of --attribute.
func parseAttributes(pairs []string) (map[string]string, error) {
	return parseAttributesOf("attribute", pairs)
}

// parseAttributesOf is parseAttributes for another flag.
func parseAttributesOf(flag string, pairs []string) (map[string]string, error) {
	of := map[string]string{}
	for _, pair := range pairs {
		key, value, assigned := strings.Cut(pair, "=")
		if !assigned {
			return nil, badInput(fmt.Errorf("--%s %q has no =: write key=value", flag, pair))
		}
		if err := eventqueue.CheckAttribute(key, value); err != nil {
			return nil, badInput(fmt.Errorf("--%s %q %w", flag, pair, err))
		}
		if _, twice := of[key]; twice {
			return nil, badInput(fmt.Errorf("--%s %s is given twice: give each key once", flag, key))
		}
		of[key] = value
	}
	return of, nil
}
