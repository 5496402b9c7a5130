package webtarget

import (
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
)

// Handler is one handler of a handlers file.
type Handler struct {
	Key eventqueue.HandlerKey
	// Timeout bounds one run. 0 leaves it out of the file.
	Timeout    time.Duration
	MaxRetries int
	// BackoffBase and BackoffMax are the first and the longest wait between runs.
	BackoffBase, BackoffMax time.Duration
}

// WriteHandlersFile writes a file for HANDLERS_FILE that sends all handlers to one
// URL.
func WriteHandlersFile(path, url string, handlers []Handler) error {
	type entry struct {
		Module     string            `yaml:"module"`
		Name       string            `yaml:"name"`
		Modifier   string            `yaml:"modifier"`
		URL        string            `yaml:"url"`
		Timeout    string            `yaml:"timeout,omitempty"`
		MaxRetries int               `yaml:"max_retries"`
		Backoff    map[string]string `yaml:"backoff"`
	}
	entries := make([]entry, len(handlers))
	for i, h := range handlers {
		entries[i] = entry{
			Module: h.Key.Module, Name: h.Key.Name, Modifier: h.Key.Modifier, URL: url, MaxRetries: h.MaxRetries,
			Backoff: map[string]string{"base": h.BackoffBase.String(), "max": h.BackoffMax.String()},
		}
		if h.Timeout != 0 {
			entries[i].Timeout = h.Timeout.String()
		}
	}
	text, err := yaml.Marshal(map[string]any{"handlers": entries})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the handlers file: %w", err)
	}
	return nil
}
