package eventctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/setup"
)

// cronKey are --canvas and --name, which identify a definition.
type cronKey struct{ canvas, name string }

func addCronKey(cmd *cobra.Command) *cronKey {
	k := addOptionalCronKey(cmd)
	require(cmd, "canvas", "name")
	return k
}

func addOptionalCronKey(cmd *cobra.Command) *cronKey {
	k := &cronKey{}
	cmd.Flags().StringVar(&k.canvas, "canvas", "", canvasUsage)
	cmd.Flags().StringVar(&k.name, "name", "", "name of the definition and of its events")
	return k
}

func (k *cronKey) parse() (eventqueue.CanvasID, error) {
	canvas, err := parseCanvas(k.canvas)
	if err != nil {
		return canvas, err
	}
	key := eventqueue.HandlerKey{Module: cronchecker.Module, Name: k.name, Modifier: cronchecker.Modifier}
	if field, err := eventqueue.CheckHandler(key); err != nil {
		return canvas, badInput(fmt.Errorf("%s: %w", field, err))
	}
	return canvas, nil
}

// onDefinition is the action of a command on one definition.
type onDefinition func(ctx context.Context, definitions *cronchecker.Definitions, canvas eventqueue.CanvasID, name string) error

// addDefinitionChange gives a command the flags of one definition, and runs change on it, which is audited as the
// action. done prints what was done.
func (p *program) addDefinitionChange(cmd *cobra.Command, action string, change onDefinition, done func(canvas eventqueue.CanvasID, name string) error) {
	key := addCronKey(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		canvas, err := key.parse()
		if err != nil {
			return err
		}
		err = p.changeDefinition(cmd.Context(), action, canvas, key.name, func(definitions *cronchecker.Definitions) error {
			return change(cmd.Context(), definitions, canvas, key.name)
		})
		if err != nil {
			return err
		}
		return done(canvas, key.name)
	}
}

// changeDefinition runs change in a transaction, and audits it.
func (p *program) changeDefinition(ctx context.Context, action string, canvas eventqueue.CanvasID, name string, change func(definitions *cronchecker.Definitions) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, _ setup.Config) error {
		return failed(store.As(actor(store)).ChangeCron(ctx, action, canvas, name, func(tx eventqueue.DB) error {
			return change(cronchecker.NewDefinitionsIn(store.Schema(), tx))
		}))
	})
}

// addDefinition gives a command the flags of one definition, and runs f on it.
func (p *program) addDefinition(cmd *cobra.Command, f onDefinition) {
	key := addCronKey(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		canvas, err := key.parse()
		if err != nil {
			return err
		}
		return p.withDefinitions(cmd.Context(), func(definitions *cronchecker.Definitions) error {
			return f(cmd.Context(), definitions, canvas, key.name)
		})
	}
}

func (p *program) withDefinitions(ctx context.Context, f func(definitions *cronchecker.Definitions) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, _ setup.Config) error {
		return f(cronchecker.NewDefinitionsIn(store.Schema(), store.Pool()))
	})
}
