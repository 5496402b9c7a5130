package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/migrations"
)

func (a *app) migrateCommand() *cobra.Command {
	return group("migrate", "Change or show the database schema",
		&cobra.Command{
			Use:   "up",
			Short: "Apply the migrations that the database has not had yet",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				config, err := a.config()
				if err != nil {
					return err
				}
				done, err := migrations.Up(cmd.Context(), config.DatabaseURL)
				return a.reportMigrations("applied", "the schema is up to date", done, err)
			},
		},
		a.migrateDownCommand(),
		&cobra.Command{
			Use:   "status",
			Short: "Show which migrations the database has had",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return a.migrateStatus(cmd) },
		},
		&cobra.Command{
			Use:   "sql",
			Short: "Print all migrations as SQL for an empty database, to run with psql",
			Args:  cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				sql := migrations.SQL()
				return a.write(struct {
					SQL string `json:"sql"`
				}{sql}, func(w io.Writer) { _, _ = io.WriteString(w, sql) })
			},
		})
}

func (a *app) migrateDownCommand() *cobra.Command {
	var steps int
	var yes bool
	cmd := &cobra.Command{
		Use:   "down --yes",
		Short: "Take back the newest migrations, and delete what their tables hold",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 1 {
				return badInput(fmt.Errorf("--steps is %d: give how many migrations to take back, at least 1", steps))
			}
			if !yes {
				return badInput(errors.New("migrate down drops tables with all that they hold: give --yes if that is meant"))
			}
			config, err := a.config()
			if err != nil {
				return err
			}
			done, err := migrations.Down(cmd.Context(), config.DatabaseURL, steps)
			return a.reportMigrations("took back", "no migration is applied", done, err)
		},
	}
	cmd.Flags().IntVar(&steps, "steps", 1, "how many migrations to take back")
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, drop the tables and their data")
	return cmd
}

type migrationDoc struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// reportMigrations tells what was done also when something failed after it.
func (a *app) reportMigrations(verb, nothing string, done []migrations.Applied, err error) error {
	doc := struct {
		Migrations []migrationDoc `json:"migrations"`
	}{make([]migrationDoc, 0, len(done))}
	for _, m := range done {
		doc.Migrations = append(doc.Migrations, migrationDoc{m.Version, m.Name})
	}
	writeErr := a.write(doc, func(w io.Writer) {
		for _, m := range done {
			_, _ = fmt.Fprintf(w, "%s %s\n", verb, m.Name)
		}
		if len(done) == 0 && err == nil {
			_, _ = fmt.Fprintln(w, nothing)
		}
	})
	if err != nil {
		return failed(err)
	}
	return writeErr
}

type migrationStateDoc struct {
	migrationDoc
	Applied   bool       `json:"applied"`
	AppliedAt *time.Time `json:"applied_at"`
}

func (a *app) migrateStatus(cmd *cobra.Command) error {
	config, err := a.config()
	if err != nil {
		return err
	}
	states, err := migrations.Status(cmd.Context(), config.DatabaseURL)
	if err != nil {
		return failed(err)
	}
	doc := struct {
		Migrations []migrationStateDoc `json:"migrations"`
		Pending    int                 `json:"pending"`
	}{Migrations: make([]migrationStateDoc, 0, len(states))}
	rows := [][]string{{"MIGRATION", "APPLIED"}}
	for _, s := range states {
		entry := migrationStateDoc{migrationDoc: migrationDoc{s.Version, s.Name}, Applied: s.Applied}
		name, applied := s.Name, "no"
		if name == "" {
			name = fmt.Sprintf("%05d (unknown to this eventctl, which is older)", s.Version)
		}
		if s.Applied {
			entry.AppliedAt, applied = new(s.AppliedAt.UTC()), clockTime(s.AppliedAt)
		} else {
			doc.Pending++
		}
		doc.Migrations = append(doc.Migrations, entry)
		rows = append(rows, []string{name, applied})
	}
	return a.write(doc, func(w io.Writer) { table(w, rows) })
}
