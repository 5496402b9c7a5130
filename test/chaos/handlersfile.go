package main

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"

	"eventsv2/test/chaos/task"
)

// entry is one handler of the file that HANDLERS_FILE names.
type entry struct {
	Module     string            `yaml:"module"`
	Name       string            `yaml:"name"`
	Modifier   string            `yaml:"modifier"`
	URL        string            `yaml:"url"`
	Timeout    string            `yaml:"timeout"`
	MaxRetries int               `yaml:"max_retries"`
	Backoff    map[string]string `yaml:"backoff"`
}

// writeHandlersFile sends all handlers of the chaos run to one URL.
func writeHandlersFile(path, to string) error {
	var entries []entry
	for _, h := range task.Handlers() {
		entries = append(entries, entry{
			Module: h.Key.Module, Name: h.Key.Name, Modifier: h.Key.Modifier, URL: to,
			Timeout: h.Timeout.String(), MaxRetries: task.MaxRetries,
			Backoff: map[string]string{"base": task.BackoffBase.String(), "max": task.BackoffMax.String()},
		})
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
