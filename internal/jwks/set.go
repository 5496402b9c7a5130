package jwks

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// fetchTakes bounds one request for the keys.
	fetchTakes = 5 * time.Second
	// rest is how long nobody is asked after a request.
	rest = 5 * time.Second
	// The keys are fresh for as long as the answer says, within these bounds.
	leastFresh, mostFresh = time.Minute, 24 * time.Hour
	// defaultFresh is how long they are where it says nothing.
	defaultFresh = time.Hour
	// staleFor is how long they are used after that if no newer ones can be got.
	staleFor = 24 * time.Hour
)

var (
	// ErrUnknown is returned by Key for an id that the issuer has no key for.
	ErrUnknown = errors.New("the issuer has no such key")
	// ErrUnavailable is returned by Key, wrapped, if the keys cannot be got.
	ErrUnavailable = errors.New("the keys of the issuer cannot be got")
)

// Set is the keys of one issuer. It is safe for concurrent use.
type Set struct {
	url     string
	client  *http.Client
	fetches singleflight.Group

	mu      sync.Mutex
	keys    map[string]*rsa.PublicKey
	fresh   time.Time // until when nobody need be asked
	usable  time.Time // until when the keys are used
	rests   time.Time // until when nobody is asked
	failure error     // of the last request; nil: it succeeded
}

// New makes a Set of the keys at an address, which begins with https://, or is one of the machine itself. It asks for
// them when the first is needed.
func New(address string) (*Set, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: fetchTakes}).DialContext, TLSHandshakeTimeout: fetchTakes,
		ResponseHeaderTimeout: fetchTakes, Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true}
	return &Set{url: address, client: &http.Client{Transport: transport, Timeout: fetchTakes,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%q is not the address of keys: write it like https://www.googleapis.com/oauth2/v3/certs", address)
	case u.Scheme == "https" || u.Scheme == "http" && onLoopback(u.Hostname()):
		return nil
	default:
		return fmt.Errorf("%q is not safe: whoever is on the way could send keys of its own; use an address that begins with https://", address)
	}
}

// onLoopback reports whether a host is the machine itself, as in tests.
func onLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// Key returns the key with an id. now is the time by the caller's clock, which is the same for all calls. A key that is
// known and usable is returned at once, also when it is time to ask for newer ones. For any other, Key blocks while the keys
// are asked for, five seconds at most. The error is ErrUnknown or wraps ErrUnavailable.
func (s *Set) Key(id string, now time.Time) (*rsa.PublicKey, error) {
	key, due, err := s.look(id, now)
	if !due {
		return key, err
	}
	fetched := s.fetches.DoChan("", func() (any, error) {
		s.fetch(now) // which notes its failure itself
		return nil, nil
	})
	if key != nil {
		return key, nil
	}
	<-fetched
	key, _, err = s.look(id, now)
	return key, err
}

// look returns a key that is known, and whether it is time to ask: because the keys are no longer fresh, or do not
// have this one.
func (s *Set) look(id string, now time.Time) (key *rsa.PublicKey, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mayAsk := !now.Before(s.rests)
	switch key := s.keys[id]; {
	case key != nil && now.Before(s.usable):
		return key, mayAsk && !now.Before(s.fresh), nil
	case s.failure != nil || s.keys == nil || !now.Before(s.usable):
		return nil, mayAsk, fmt.Errorf("%w: %w", ErrUnavailable, s.failure)
	default:
		return nil, mayAsk, ErrUnknown
	}
}

// fetch asks for the keys, unless another call just has.
func (s *Set) fetch(now time.Time) {
	s.mu.Lock()
	rests := now.Before(s.rests)
	s.mu.Unlock()
	if rests {
		return
	}
	began := time.Now()
	keys, lives, err := get(s.client, s.url)
	ended := now.Add(time.Since(began))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rests, s.failure = ended.Add(rest), err
	if err == nil {
		s.keys, s.fresh, s.usable = keys, now.Add(lives), now.Add(lives+staleFor)
	}
}
