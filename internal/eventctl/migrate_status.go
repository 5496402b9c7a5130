package eventctl

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"eventsv2/internal/humantime"
	"eventsv2/internal/printing"
	"eventsv2/migrations"
)

func migrateStatusCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show which migrations were applied to the database",
		Long:    "Show which migrations were applied to the database, and when.",
		Example: "  eventctl migrate status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			migrator, databaseURL, err := p.migrator(cmd.Context())
			if err != nil {
				return err
			}
			states, err := migrator.Status(cmd.Context(), databaseURL)
			if err != nil {
				return failed(err)
			}
			return p.writeMigrationStates(states)
		},
	}
}

type migrationStateDoc struct {
	migrationDoc
	Applied   bool       `json:"applied"`
	AppliedAt *time.Time `json:"applied_at,omitempty"`
}

func (p *program) writeMigrationStates(states []migrations.State) error {
	doc := struct {
		Items   []migrationStateDoc `json:"items"`
		Pending int                 `json:"pending"`
	}{Items: make([]migrationStateDoc, 0, len(states))}
	rows := [][]string{{"MIGRATION", "APPLIED"}}
	for _, s := range states {
		entry := migrationStateDoc{migrationDoc: migrationDoc{s.Version, s.Name}, Applied: s.Applied}
		name, applied := s.Name, "no"
		if name == "" {
			name = fmt.Sprintf("%05d (unknown to this eventctl, which is older)", s.Version)
		}
		if s.Applied {
			entry.AppliedAt, applied = new(s.AppliedAt.UTC()), humantime.Time(s.AppliedAt)
		} else {
			doc.Pending++
		}
		doc.Items = append(doc.Items, entry)
		rows = append(rows, []string{name, applied})
	}
	return p.write(doc, func(w io.Writer) { printing.Table(w, rows) })
}
