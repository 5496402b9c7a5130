package eventctl

import (
	"io"
	"maps"

	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/printing"
	"eventsv2/internal/setup"
)

// program is one run of eventctl, with the streams and the environment of its process.
// Commands share nothing else.
type program struct {
	*printing.Printer
	environment map[string]string
	stdin       io.Reader
	databaseURL string // value of the flag
}

// variables returns the variables of the environment, with the flag in place of
// DATABASE_URL.
func (p *program) variables() map[string]string {
	if p.databaseURL == "" {
		return p.environment
	}
	environment := maps.Clone(p.environment)
	if environment == nil {
		environment = map[string]string{}
	}
	environment["DATABASE_URL"] = p.databaseURL
	return environment
}

// config reads the configuration.
func (p *program) config() (setup.Config, error) {
	config, err := setup.Load(p.variables())
	if err != nil {
		return config, badInput(err)
	}
	return config, nil
}

// schema is the schema of the queue for commands that need no database. Migrations check it.
func (p *program) schema() pgsession.Schema {
	return pgsession.Schema(p.environment["EVENTS_SCHEMA"])
}

// write writes the result of a command: doc as JSON, or as the text that human writes.
func (p *program) write(doc any, human func(w io.Writer)) error {
	return failed(p.Result(doc, human))
}

// writeLine is write for a result that is one line of text.
func (p *program) writeLine(doc any, text string) error {
	return p.write(doc, func(w io.Writer) { _, _ = io.WriteString(w, printing.PrintableLines(text)+"\n") })
}

// writeNothing is write for a result without a text, because an error describes it.
func (p *program) writeNothing(doc any) error { return p.write(doc, func(io.Writer) {}) }
