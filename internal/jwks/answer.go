package jwks

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxBytes bounds an answer, maxKeys the keys that are read of it.
	maxBytes = 1 << 20
	maxKeys  = 100
	// A modulus has at least as many bits as is safe, and at most as many as are quickly computed with.
	leastBits, mostBits = 2048, 8192
)

// get asks for the keys, and returns how long they are fresh.
func get(client *http.Client, address string) (keys map[string]*rsa.PublicKey, lives time.Duration, err error) {
	// Requests wait for the answer that the first of them has asked for, so it must not end with that one.
	ctx, cancel := context.WithTimeout(context.Background(), fetchTakes)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("get %s: the answer is %s", address, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBytes+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("get %s: %w", address, err)
	case len(body) > maxBytes:
		return nil, 0, fmt.Errorf("get %s: the answer is longer than %d bytes", address, maxBytes)
	}
	if keys, err = parse(body); err != nil {
		return nil, 0, fmt.Errorf("get %s: %w", address, err)
	}
	return keys, freshFor(answer.Header), nil
}

// freshFor is how long an answer may be used by its headers.
func freshFor(header http.Header) time.Duration {
	fresh := defaultFresh
	for directive := range strings.SplitSeq(header.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return leastFresh
		case "max-age":
			if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
				age, _ := strconv.Atoi(header.Get("Age")) // 0 if there is none
				fresh = time.Duration(min(max(0, seconds-max(0, age)), int(mostFresh/time.Second))) * time.Second
			}
		}
	}
	return min(max(fresh, leastFresh), mostFresh)
}

// jwk is a key. Those of other kinds, or for other purposes, are left out.
type jwk struct {
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

func parse(body []byte) (map[string]*rsa.PublicKey, error) {
	var document struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, errors.New("the answer is not a set of keys: it is no JSON, or of another form")
	}
	keys := map[string]*rsa.PublicKey{}
	for _, k := range document.Keys[:min(len(document.Keys), maxKeys)] {
		if k.Type != "RSA" || k.ID == "" || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != "RS256" {
			continue
		}
		if key := k.rsa(); key != nil {
			keys[k.ID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the answer has no key of RSA for RS256")
	}
	return keys, nil
}

// rsa returns the key; nil: it is none, or not safe.
func (k jwk) rsa() *rsa.PublicKey {
	modulus, err := base64.RawURLEncoding.DecodeString(k.Modulus)
	if err != nil || len(modulus) > mostBits/8 {
		return nil
	}
	exponent, err := base64.RawURLEncoding.DecodeString(k.Exponent)
	if err != nil || len(exponent) > 4 {
		return nil
	}
	n, e := new(big.Int).SetBytes(modulus), new(big.Int).SetBytes(exponent).Int64()
	if n.BitLen() < leastBits || n.Bit(0) == 0 || e < 3 || e > 1<<31-1 || e%2 == 0 {
		return nil
	}
	return &rsa.PublicKey{N: n, E: int(e)}
}
