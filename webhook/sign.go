package webhook

import (
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The lengths of a secret that Standard Webhooks asks for, in bytes.
const (
	minSigningSecret = 24
	maxSigningSecret = 64
)

// StandardSigner signs requests by Standard Webhooks with symmetric signatures (v1), so
// that Standard, and every other receiver of that scheme, can verify them. It is safe for
// concurrent use.
type StandardSigner struct {
	keys hmacKeys
}

// NewStandardSigner makes a signer with 1 to 16 secrets of 24 to 64 bytes, in base64 with
// or without whsec_. The error names the secret that makes no sense, without its text.
func NewStandardSigner(secrets ...string) (*StandardSigner, error) {
	keys, err := standardKeys(secrets)
	if err != nil {
		return nil, fmt.Errorf("webhook.NewStandardSigner: %w", err)
	}
	for i, key := range keys.keys {
		if len(key) < minSigningSecret || len(key) > maxSigningSecret {
			return nil, fmt.Errorf("webhook.NewStandardSigner: secret %d has %d bytes: Standard Webhooks asks for %d to %d; openssl rand -base64 32 makes one",
				i+1, len(key), minSigningSecret, maxSigningSecret)
		}
	}
	return &StandardSigner{keys}, nil
}

// Sign sets the headers of a request that is sent at the given time with exactly this
// body: webhook-id, webhook-timestamp, and webhook-signature with a signature by each
// secret, so that a receiver with any of them verifies it. The id is the same whenever
// the request is sent again, and holds no dot.
func (s *StandardSigner) Sign(header http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	text := signed{before: id + "." + timestamp + ".", body: body}
	signatures := make([]string, len(s.keys.keys))
	for i, key := range s.keys.keys {
		mac := hmac.New(s.keys.hash, key)
		text.writeTo(mac)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", strings.Join(signatures, " "))
}
