package pgsession

import (
	"errors"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ParseURL reads a database URL or a keyword string. Blanks around it are ignored.
// An error contains no part of the text, since any part of a malformed one may be
// the password. ParseURL also refuses a text in which a piece of the password would
// be read as the host, the user, the database or a setting: errors and the server
// show these.
func ParseURL(databaseURL string) (*pgxpool.Config, error) {
	text := strings.TrimSpace(databaseURL)
	isURL := strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
	if isURL {
		if err := checkURL(text); err != nil {
			return nil, err
		}
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, unreadable(text, isURL, err) // without err, which may quote the text
	}
	if err := checkParts(&config.ConnConfig.Config); err != nil {
		return nil, err
	}
	return config, nil
}

// URLError is a mistake in a database URL. ParseURL and TakeSettings return it.
type URLError struct{ problem string }

// Error says what is wrong and what to do. It contains no part of the URL.
func (e *URLError) Error() string { return e.problem }

func newURLError(problem string) error { return &URLError{problem} }

const (
	hidden  = " (its text is not shown, since it may hold a password)"
	encode  = "write special characters of its user and password as %XX: / is %2F, ? is %3F, # is %23, @ is %40, : is %3A, % is %25"
	quoting = "write name=value pairs with blanks between them, and a value with blanks in single quotes, as in " +
		`password='two words', with \' for a quote`
)

// checkURL finds a password that ends the authority of the URL before its host.
func checkURL(text string) error {
	_, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	switch {
	case strings.Contains(rest, "#"):
		return newURLError("the database URL holds a #, which ends a URL: " + encode + hidden)
	case end >= 0 && !strings.Contains(rest[:end], "@"):
		path, _, _ := strings.Cut(rest[end:], "?")
		if strings.Contains(path, "@") {
			return newURLError("the database URL has an @ behind its first /: " + encode + hidden)
		}
	}
	return nil
}

// unreadable is the error for a text that the parser refused.
func unreadable(text string, isURL bool, err error) error {
	var escape url.EscapeError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newURLError("a file that the database URL names (as sslrootcert, sslcert, sslkey, passfile or servicefile) does not exist" + hidden)
	case errors.Is(err, fs.ErrPermission):
		return newURLError("a file that the database URL names (as sslrootcert, sslcert, sslkey, passfile or servicefile) may not be read" + hidden)
	case isURL && errors.As(err, &escape):
		return newURLError("the database URL holds a % that two hexadecimal digits do not follow: " + encode + hidden)
	case isURL:
		return newURLError("the database URL cannot be read: " + encode +
			"; the port is a number, sslmode one of disable, allow, prefer, require, verify-ca and verify-full" + hidden)
	case strings.Contains(text, "://"):
		return newURLError("the database URL does not begin with postgres:// or postgresql://" + hidden)
	default:
		return newURLError("the database URL is neither a URL, as in postgres://user:password@host:5432/database, nor can it be read as a keyword string: " +
			quoting + hidden)
	}
}

var (
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*$`)
	secretName  = regexp.MustCompile(`(?i)pass|pwd|secret`)
	secretValue = regexp.MustCompile(`(?i)(pass|pwd|secret)[a-z]*\s*=`)
)

// checkParts finds pieces of a password in the parts that errors and the server show.
func checkParts(config *pgconn.Config) error {
	wrong := newURLError("the database URL cannot be meant as it is written: a password or another value seems not to be quoted; " +
		quoting + "; or, in a URL, " + encode + hidden)
	shown := []string{config.Host, config.User, config.Database}
	for _, other := range config.Fallbacks {
		shown = append(shown, other.Host)
	}
	for name, value := range config.RuntimeParams {
		if !settingName.MatchString(name) || secretName.MatchString(name) {
			return wrong
		}
		shown = append(shown, value)
	}
	_, behind, _ := strings.Cut(config.User, ":")
	switch {
	case slices.ContainsFunc(shown, secretValue.MatchString),
		strings.Contains(behind, "@"),
		strings.LastIndex(config.Host, "@") > 0, // an abstract socket begins with one
		strings.Contains(config.Database, "://"):
		return wrong
	}
	return nil
}
