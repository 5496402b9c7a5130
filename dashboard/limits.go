package dashboard

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

// limitForm reads the canvas, the module and the name of a form about a limit, whose sender has to administer the canvas.
func (d *dashboard) limitForm(r *http.Request) (scope eventqueue.Scope, err error) {
	if scope.Canvas, err = d.canvasOfForm(r, "/groups"); err != nil {
		return scope, err
	}
	if scope.Module, err = field(r, "module"); err != nil {
		return scope, err
	}
	scope.Name, err = field(r, "name")
	return scope, err
}

// limitsPath is the page of the limits of a canvas.
func limitsPath(canvas eventqueue.CanvasID) string {
	return "/groups?" + url.Values{"canvas": {canvas.String()}}.Encode()
}

// changeRate sets the rate limit of a form, or removes it.
func (d *dashboard) changeRate(remove bool) formAction {
	return func(r *http.Request) (string, flash, error) {
		scope, err := d.limitForm(r)
		if err != nil {
			return "", flash{}, err
		}
		limit, err := rateOfForm(r, scope, remove)
		if err != nil {
			return "", flash{}, mistake{limitsPath(scope.Canvas), err}
		}
		limits, err := operate.NewRateLimits(d.Store.As(viewerOf(r).actor()), d.Queue)
		if err != nil {
			return "", flash{}, err
		}
		if !remove {
			_, err = limits.Set(r.Context(), limit)
			return limitsPath(scope.Canvas), done("The limit is set. What has begun in this minute and this day counts."), err
		}
		removed, _, err := limits.Remove(r.Context(), scope)
		return limitsPath(scope.Canvas), removal(removed), err
	}
}

// rateOfForm is the rate limit of a form, or of one to be removed its scope.
func rateOfForm(r *http.Request, scope eventqueue.Scope, remove bool) (limit operate.RateLimit, err error) {
	limit = operate.RateLimit{Scope: scope, Mode: ratelimit.Mode(r.PostFormValue("mode"))}
	if remove {
		return limit, scope.ValidateRate()
	}
	if limit.PerMinute, err = numberFrom(r, "per_minute", 0); err != nil {
		return limit, err
	}
	if limit.PerDay, err = numberFrom(r, "per_day", 0); err != nil {
		return limit, err
	}
	return limit, limit.Validate()
}

// numberFrom is the number in a field, from a least one on; an empty field is 0.
func numberFrom(r *http.Request, name string, least int) (n int, err error) {
	text := strings.TrimSpace(r.PostFormValue(name))
	if text != "" {
		n, err = strconv.Atoi(text)
	}
	if err != nil || n < least || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s: %q is no number from %d to %d", name, line(text), least, math.MaxInt32)
	}
	return n, nil
}

// changeConcurrency sets the concurrency limit of a form, or removes it.
func (d *dashboard) changeConcurrency(remove bool) formAction {
	return func(r *http.Request) (string, flash, error) {
		scope, err := d.limitForm(r)
		if err != nil {
			return "", flash{}, err
		}
		limit := operate.ConcurrencyLimit{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, EveryKey: r.PostFormValue("every_key") != ""}
		if limit.Key, err = field(r, "ordering_key"); err != nil {
			return "", flash{}, err
		}
		if err = limit.Validate(); err == nil && !remove {
			limit.Max, err = numberFrom(r, "max_running", 1)
		}
		if err != nil {
			return "", flash{}, mistake{limitsPath(scope.Canvas), err}
		}
		limits, err := operate.NewConcurrencyLimits(d.Store.As(viewerOf(r).actor()), d.Queue)
		if err != nil {
			return "", flash{}, err
		}
		if !remove {
			return limitsPath(scope.Canvas), done("The limit is set. Runs that had begun go on."), limits.Set(r.Context(), limit)
		}
		removed, err := limits.Remove(r.Context(), limit)
		return limitsPath(scope.Canvas), removal(removed), err
	}
}

func removal(removed bool) flash {
	if !removed {
		return refused("There is no such limit any more.")
	}
	return done("The limit is removed, and what waited for it is tried now.")
}
