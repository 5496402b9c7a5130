package main

import (
	"os"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
)

// handlerEntry is one handler in the file that HANDLERS_FILE names.
type handlerEntry struct {
	Module     string            `yaml:"module"`
	Name       string            `yaml:"name"`
	Modifier   string            `yaml:"modifier"`
	URL        string            `yaml:"url"`
	MaxRetries int               `yaml:"max_retries"`
	Backoff    map[string]string `yaml:"backoff"`
}

// maxRetries is enough for an answer that fails on purpose and for a crash, also
// where a busy machine adds more: what the target does not refuse ends well.
const maxRetries = 20

// writeHandlersFile sends every handler to one URL, with short waits between
// retries, since nobody wants to watch the defaults.
func writeHandlersFile(path string, keys []eventqueue.HandlerKey, target string) error {
	entries := make([]handlerEntry, len(keys))
	for i, key := range keys {
		entries[i] = handlerEntry{
			Module: key.Module, Name: key.Name, Modifier: key.Modifier, URL: target, MaxRetries: maxRetries,
			Backoff: map[string]string{"base": "200ms", "max": "2s"},
		}
	}
	text, err := yaml.Marshal(map[string]any{"handlers": entries})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
