package services

import (
	"errors"
	"net/url"
	"strings"
)

// WithDatabase returns the URL of a server, or keyword string, with another database in it.
func WithDatabase(databaseURL, name string) (string, error) {
	if !strings.Contains(databaseURL, "://") {
		return databaseURL + " dbname=" + name, nil // the last one counts
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		// The library's error would print the URL with its password.
		return "", errors.New("the database URL is not a URL: percent-encode the special characters in its user and password")
	}
	query := u.Query()
	query.Del("dbname")
	query.Del("database")
	u.Path, u.RawPath, u.RawQuery = "/"+name, "", query.Encode()
	return u.String(), nil
}
