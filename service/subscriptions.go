package service

import (
	"errors"
	"fmt"

	"eventsv2/eventqueue/httptarget"
	"eventsv2/pubsubsource"
)

// maxUnfit is how many subscriptions that make no sense are reported.
const maxUnfit = 100

// subscriptionsOf are the subscriptions of other services in a handlers file. The error names the lines of those that make no sense.
func subscriptionsOf(file *httptarget.File) ([]pubsubsource.Config, error) {
	var configs []pubsubsource.Config
	var failed []error
	for _, entry := range file.Subscriptions {
		config := pubsubsource.Config{Subscription: entry.Subscription, Canvas: entry.Canvas, Handler: entry.Key}
		if err := config.Validate(); err != nil && len(failed) < maxUnfit {
			failed = append(failed, fmt.Errorf("%s:%d: %w", file.Name, entry.Line, err))
		}
		configs = append(configs, config)
	}
	return configs, errors.Join(failed...)
}
