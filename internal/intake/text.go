package intake

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// What bounds a query.
const (
	maxQueryBytes = 64 << 10
	maxParameters = 200
)

// CheckText returns an error for a text that Postgres cannot hold: with the character NUL, or not UTF-8.
func CheckText(text string) error {
	switch {
	case !utf8.ValidString(text):
		return errors.New("it is not UTF-8")
	case strings.ContainsRune(text, 0):
		return errors.New("it has the character NUL")
	default:
		return nil
	}
}

// CheckURL returns an error for a request whose path or query has a text that Postgres cannot hold, or whose query cannot be
// read or is too long. It is for the sender, and quotes nothing of what was sent but the name of a parameter.
func CheckURL(r *http.Request) error {
	if err := CheckText(r.URL.Path); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	if len(r.URL.RawQuery) > maxQueryBytes || strings.Count(r.URL.RawQuery, "&") >= maxParameters {
		return fmt.Errorf("query: at most %d parameters and %d bytes are read", maxParameters, maxQueryBytes)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errors.New("query: it is not encoded as key=value&key=value, with %XX for special characters")
	}
	for name, list := range values {
		if err := CheckText(name); err != nil {
			return fmt.Errorf("query: the name of a parameter: %w", err)
		}
		for _, value := range list {
			if err := CheckText(value); err != nil {
				return fmt.Errorf("query: %s: %w", short(name), err)
			}
		}
	}
	return nil
}
