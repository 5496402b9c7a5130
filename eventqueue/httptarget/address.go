package httptarget

import (
	"errors"
	"net/url"
	"strconv"
)

// address is the URL of a target. Its String leaves out the parts that may be
// secret: passwords before the @ and tokens after the ?.
type address struct {
	url *url.URL
}

// parseAddress accepts absolute http and https URLs with a host. Its errors never
// repeat the text: the part that makes a URL unreadable may be its password.
func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return address{}, errors.New("is not a valid URL: write it like https://example.com/push, with special characters as %XX")
	case u.Scheme != "http" && u.Scheme != "https":
		return address{}, errors.New("is not a complete http or https URL: write it like https://example.com/push")
	case u.Hostname() == "":
		return address{}, errors.New("names no host: write it like https://example.com/push")
	case !validPort(u.Port()):
		return address{}, errors.New("has a port that does not exist: use one from 1 to 65535, or leave it out")
	case u.Fragment != "":
		return address{}, errors.New("has a part after #, which is never sent: remove it, or write # as %23")
	}
	return address{u}, nil
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// String is the URL without user, password and query, for logs and messages.
func (a address) String() string {
	if a.url == nil {
		return ""
	}
	shown := url.URL{Scheme: a.url.Scheme, Host: a.url.Host, Path: a.url.Path, RawPath: a.url.RawPath}
	if a.url.RawQuery != "" {
		return shown.String() + "?…"
	}
	return shown.String()
}
