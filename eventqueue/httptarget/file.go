package httptarget

import (
	"errors"
	"fmt"
	"os"

	"eventsv2/eventqueue"
)

// File is a valid handlers file.
type File struct {
	// Name is the path that it was read from, for messages.
	Name string
	// Entries are in the order of the file; there is at least one, unless the file has Webhooks or Subscriptions only.
	Entries []Entry
	// Webhooks are the sources of webhooks, in the order of the file.
	Webhooks []WebhookEntry
	// Subscriptions are those of other services whose messages become events, in the order of the file.
	Subscriptions []SubscriptionEntry

	dispatches []dispatch // of Entries with an Event
}

// Load reads a handlers file. The error is from reading it, or lists its
// mistakes, each with path and line; see Problem.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the handlers file: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for a text that has been read already; name is used as the path in
// messages. It retains no part of data.
func Parse(name string, data []byte) (*File, error) {
	p := &parser{problems: problems{file: name}}
	has := p.parse(data)
	if err := p.problems.err(); err != nil {
		return nil, err
	}
	return &File{Name: name, Entries: has.entries, Webhooks: has.webhooks, Subscriptions: has.subscriptions, dispatches: has.dispatches}, nil
}

// Register makes a Target for every entry and registers it with the entry's
// policy, and for each event of the entries' Event what emits one for each of its handlers. The error
// names the lines whose handlers are registered already, or whose
// secrets are missing or make no sense; the others are registered
// nevertheless, so do not use the registry after an error. It contains no secret.
func (f *File) Register(handlers *eventqueue.Handlers, shared Shared) error {
	if shared.Client == nil {
		shared.Client = NewClient()
	}
	if shared.Secret == nil {
		shared.Secret = environmentSecret
	}
	if shared.IDTokens == nil {
		shared.IDTokens = NewIDTokens()
	}
	var failed []error // few: the file has each handler once
	fail := func(e *Entry, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s:%d: %w", f.Name, e.Line, err))
		}
	}
	runners := make(map[*Entry]eventqueue.Handler)
	for i := range f.Entries {
		e := &f.Entries[i]
		handler, err := e.newHandler(shared)
		if err == nil {
			runners[e] = handler
			if e.Event == "" {
				err = e.registerAt(handlers, e.Key, handler)
			}
		}
		fail(e, err)
	}
	for _, d := range f.dispatches {
		d.register(handlers, runners, fail)
	}
	return errors.Join(failed...)
}
