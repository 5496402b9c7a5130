package main

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
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

// writeHandlersFile sends all events of the soak to one URL.
func writeHandlersFile(path, to string) error {
	var entries []entry
	for _, key := range handlerKeys() {
		entries = append(entries, entry{Module: key.Module, Name: key.Name, Modifier: key.Modifier, URL: to,
			Timeout: handlerTimeout.String(), MaxRetries: maxRetries,
			Backoff: map[string]string{"base": backoffBase.String(), "max": backoffMax.String()}})
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
