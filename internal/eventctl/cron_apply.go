package eventctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/printing"
	"eventsv2/internal/view"
	"eventsv2/internal/yamlfile"
)

// maxCronFileBytes bounds a file of definitions.
const maxCronFileBytes = 1 << 20

func applyCronCommand(p *program) *cobra.Command {
	var options cronchecker.ApplyOptions
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make the cron definitions those of a YAML file",
		Long: "Add the definitions of a YAML file (- is standard input), and change those that differ. What is the\n" +
			"same stays as it is, and what is disabled stays disabled, so a deployment may apply its file each\n" +
			"time. With --prune, other definitions on the canvases of the file are removed: those of its\n" +
			"definitions, and those of its list canvases, which may have none any more. --dry-run only shows\n" +
			"what would change. The whole file is checked first; then each change is made on its own.\n\n" +
			"  canvases: [6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11]\n" +
			"  definitions:\n" +
			"    - canvas: 6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11\n" +
			"      name: nightly\n" +
			"      schedule: 30 2 * * *\n" +
			"      time_zone: Europe/Berlin   # and missed, skip_if_paused, skip_if_running, as of cron set",
		Example: "  eventctl cron apply crons.yaml --prune --dry-run",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&options.Prune, "prune", false, "remove the definitions on the canvases of the file that it does not have")
	cmd.Flags().BoolVar(&options.DryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := p.readCronFile(args[0], &options)
		if err != nil {
			return err
		}
		return p.applyCrons(cmd.Context(), list, options)
	}
	return cmd
}

// cronApplied is a change of a definition, in JSON.
type cronApplied struct {
	Action   cronchecker.Action  `json:"action"`
	Canvas   eventqueue.CanvasID `json:"canvas_id"`
	Name     string              `json:"name"`
	Schedule string              `json:"schedule,omitempty"`
	TimeZone string              `json:"time_zone,omitempty"`
}

func (p *program) applyCrons(ctx context.Context, list []cronchecker.NewDefinition, options cronchecker.ApplyOptions) error {
	dry := options
	dry.DryRun = true
	var changes []cronchecker.Change
	err := p.withDefinitions(ctx, func(definitions *cronchecker.Definitions) (err error) {
		changes, err = definitions.Apply(ctx, list, dry)
		return failed(err)
	})
	if err != nil {
		return err
	}
	for i := 0; i < len(changes) && err == nil && !options.DryRun; i++ {
		c, action := changes[i], "set_cron"
		if c.Action == cronchecker.ActionRemove {
			action = "remove_cron"
		}
		err = p.changeDefinition(ctx, action, c.Canvas, c.Name, func(definitions *cronchecker.Definitions) error { return definitions.Make(ctx, c) })
		if err != nil {
			err = errors.Join(err, fmt.Errorf("%d of %d changes were made; apply the file again", i, len(changes)))
			changes = changes[:i]
		}
	}
	return errors.Join(err, p.writeApplied(changes, options.DryRun))
}

func (p *program) writeApplied(changes []cronchecker.Change, dry bool) error {
	doc := struct {
		DryRun bool          `json:"dry_run"`
		Items  []cronApplied `json:"items"`
	}{dry, view.All(changes, func(c cronchecker.Change) cronApplied {
		return cronApplied{c.Action, c.Canvas, c.Name, c.New.Schedule, c.New.TimeZone}
	})}
	return p.write(doc, func(w io.Writer) {
		if len(changes) == 0 {
			_, _ = io.WriteString(w, "nothing differs\n")
		}
		for _, c := range changes {
			words := map[cronchecker.Action]string{cronchecker.ActionAdd: "added", cronchecker.ActionChange: "changed", cronchecker.ActionRemove: "removed"}[c.Action]
			if dry {
				words = "would " + string(c.Action)
			}
			line := fmt.Sprintf("%s %s on canvas %s", words, printing.Printable(c.Name), c.Canvas)
			if c.Action != cronchecker.ActionRemove {
				line += fmt.Sprintf(": %s, %s", c.New.Schedule, c.New.TimeZone)
			}
			if c.Disabled {
				line += "; it stays disabled"
			}
			_, _ = io.WriteString(w, line+"\n")
		}
	})
}

// readCronFile reads a file of definitions, and adds its canvases to the options. The error has the first hundred mistakes, each with its line.
func (p *program) readCronFile(path string, options *cronchecker.ApplyOptions) (list []cronchecker.NewDefinition, err error) {
	from := p.stdin
	if path != "-" {
		file, err := os.Open(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, notFound("there is no file %s", path)
		case err != nil:
			return nil, badInput(fmt.Errorf("the file of cron definitions: %w", err))
		}
		defer func() { _ = file.Close() }() // nothing was written to it
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxCronFileBytes+1))
	if err != nil {
		return nil, badInput(fmt.Errorf("read %s: %w", path, err))
	}
	mistakes := yamlfile.Mistakes{Prefix: path + ": "}
	report := mistakes.Report
	root := yamlfile.Document(yamlfile.Source{Data: data, MaxBytes: maxCronFileBytes, Empty: "list definitions", Second: "a file of cron definitions is one document"}, report)
	if root != nil {
		r := cronFile{report}
		fields, _ := yamlfile.Mapping(root, "the file", report, "canvases", "definitions")
		for _, n := range r.elements(fields["canvases"], "canvases") {
			options.Canvases = append(options.Canvases, r.canvas(n, n.Line))
		}
		for _, n := range r.elements(fields["definitions"], "definitions") {
			list = append(list, r.definition(n))
		}
	}
	if err := mistakes.Err(); err != nil {
		return nil, badInput(err)
	}
	return list, nil
}

// cronFile reads the nodes of a file, and reports mistakes.
type cronFile struct{ report yamlfile.Report }

func (r cronFile) definition(n *yaml.Node) (d cronchecker.NewDefinition) {
	fields, ok := yamlfile.Mapping(n, "a definition", r.report, "canvas", "name", "schedule", "time_zone", "missed", "skip_if_paused", "skip_if_running")
	if !ok {
		return d
	}
	d.Canvas = r.canvas(fields["canvas"], n.Line)
	d.Name, d.Schedule, d.TimeZone = r.text(fields["name"], "name"), r.text(fields["schedule"], "schedule"), r.text(fields["time_zone"], "time_zone")
	d.Missed = cronchecker.Missed(r.text(fields["missed"], "missed"))
	d.SkipIfPaused, d.SkipIfRunning = r.truth(fields["skip_if_paused"], "skip_if_paused"), r.truth(fields["skip_if_running"], "skip_if_running")
	if err := d.Validate(); err != nil && d.Canvas != (eventqueue.CanvasID{}) {
		r.report(n.Line, "%v", err)
	}
	return d
}

func (r cronFile) canvas(n *yaml.Node, line int) eventqueue.CanvasID {
	text := r.text(n, "canvas")
	canvas, err := eventqueue.ParseCanvasID(text)
	if err != nil {
		r.report(line, "canvas: %v", err)
	}
	return canvas
}

// elements returns those of a list, none of one that is absent.
func (r cronFile) elements(n *yaml.Node, what string) []*yaml.Node {
	list := yamlfile.Resolve(n)
	if list == nil || yamlfile.IsNull(list) {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		r.report(list.Line, "%s: is %s and not a list", what, yamlfile.KindOf(list))
		return nil
	}
	return list.Content
}

func (r cronFile) text(n *yaml.Node, what string) string {
	value := yamlfile.Resolve(n)
	if value == nil || yamlfile.IsNull(value) {
		return ""
	}
	if value.Kind != yaml.ScalarNode {
		r.report(value.Line, "%s: is %s and not a text", what, yamlfile.KindOf(value))
		return ""
	}
	return strings.TrimSpace(value.Value)
}

func (r cronFile) truth(n *yaml.Node, what string) bool {
	switch text := r.text(n, what); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		r.report(n.Line, "%s: %q is neither true nor false", what, text)
		return false
	}
}
