package service

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/memnotify"
	"eventsv2/internal/setup"
)

type ownVariables struct {
	Place string `env:"OWN_PLACE" envDefault:"here"`
	Size  int    `env:"OWN_SIZE"`
}

// own is a notifier that only its file knows.
type own struct {
	memory
	variables ownVariables
}

func init() {
	register("own", kind{
		open: func(_ context.Context, c Config, _ *pgxpool.Pool) (notifier, error) {
			return own{memory{memnotify.New(memnotify.Config{})}, *c.notifierVariables.(*ownVariables)}, nil
		},
		environment: &setup.NotifierVariables{Meaning: "own is that of a test.", New: func() any { return new(ownVariables) }},
		validate: func(c Config) error {
			if c.notifierVariables.(*ownVariables).Size < 0 {
				return errors.New("OWN_SIZE is negative")
			}
			return nil
		},
		logged: func(c Config) string { return "own, " + c.notifierVariables.(*ownVariables).Place },
	})
}

// TestNotifierIsConfiguredByTheEnvironment configures one by the environment.
func TestNotifierIsConfiguredByTheEnvironment(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"DATABASE_URL": "d", "NOTIFIER": "own", "OWN_SIZE": "7"}
	c, err := FromEnvironment(environment)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := kinds[c.Notifier].open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := opened.(own).variables, (ownVariables{"here", 7}); got != want {
		t.Errorf("opened with %+v, want %+v", got, want)
	}
	if got := c.notifierName(); got != "own, here" {
		t.Errorf("the log names it %q", got)
	}
	environment["OWN_SIZE"] = "-7"
	if c, err = FromEnvironment(environment); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "OWN_SIZE") {
		t.Errorf("Validate = %v, which does not name OWN_SIZE", err)
	}
	environment["OWN_SIZE"] = "many"
	if _, err := FromEnvironment(environment); err == nil || !strings.Contains(err.Error(), "OWN_SIZE: ") {
		t.Errorf("FromEnvironment = %v, which does not name OWN_SIZE", err)
	}
	if table := setup.Table(); !strings.Contains(table, "own is that of a test. |") || !strings.Contains(table, "| `OWN_PLACE` | `here` |") {
		t.Errorf("the page of the configuration lacks it:\n%s", table)
	}
}
