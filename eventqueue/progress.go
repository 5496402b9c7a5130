package eventqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxResultBytes is how long the JSON of a result may be.
	MaxResultBytes = 64 << 10
	// MaxNoteBytes is how long the sentence of a Progress may be.
	MaxNoteBytes = 200
)

// Progress is how far a run is.
type Progress struct {
	Fraction float64 // of 0 to 1
	Note     string  // a sentence for people; may be empty
}

// SetResult gives the event a result: JSON, or what encodes as JSON of at most MaxResultBytes. It is kept if this run
// completes the event, in the transaction that does, and where the history keeps completed events; see docs/results.md. The
// last call counts. The error says what is wrong with the result, which is not set then.
//
// It is for the handler's goroutine, before CompleteTx and CompleteIn.
func (r *Run) SetResult(result any) error {
	reporter, ok := r.Completer.(Reporter)
	if !ok {
		return errNotCompletable
	}
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode the result of event %s as JSON: %w", r.ID, err)
	}
	if len(text) > MaxResultBytes {
		return fmt.Errorf("the result of event %s is %d bytes of JSON: at most %d are kept; store it yourself, and set a reference to it", r.ID, len(text), MaxResultBytes)
	}
	if err := reporter.SetResult(text); err != nil {
		return fmt.Errorf("set the result of event %s: %w", r.ID, err)
	}
	return nil
}

// Progress shows on the event's page, in the API and in eventctl how far the run is: a fraction of 0 to 1, and a sentence of at
// most MaxNoteBytes, or "". It returns at once: the worker writes what was said last, at most every two seconds and while the
// run goes on, so that calling it often costs nothing. What cannot be written is lost. The error says what is wrong with the arguments; a handler
// may ignore it. It is safe for concurrent use.
func (r *Run) Progress(fraction float64, note string) error {
	reporter, ok := r.Completer.(Reporter)
	if !ok {
		return errNotCompletable
	}
	switch {
	case !(fraction >= 0 && fraction <= 1): // nor NaN
		return fmt.Errorf("the progress of event %s is %v: it is a fraction of 0 to 1", r.ID, fraction)
	case len(note) > MaxNoteBytes:
		return fmt.Errorf("the note on the progress of event %s has %d bytes: at most %d are shown", r.ID, len(note), MaxNoteBytes)
	case !utf8.ValidString(note) || strings.ContainsRune(note, 0):
		return errors.New("the note on the progress of event " + r.ID.String() + " is not UTF-8 without zero bytes, which no text in Postgres may have")
	}
	reporter.ShowProgress(Progress{fraction, note})
	return nil
}

// Reporter is implemented by a Completer that takes what a handler says of its run; a worker's does.
type Reporter interface {
	// SetResult does what [Run.SetResult] says, with a result that was checked.
	SetResult(result json.RawMessage) error

	// ShowProgress does what [Run.Progress] says, with arguments that were checked.
	ShowProgress(progress Progress)
}
