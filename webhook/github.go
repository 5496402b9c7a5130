package webhook

func init() {
	registerTrusting("github", func(o SchemeOptions) (Verifier, error) {
		scheme := GitHubHMAC(o.Secrets...)
		scheme.TrustUnsignedID = o.TrustUnsignedID
		return NewHMAC(scheme)
	})
}

// GitHub verifies X-Hub-Signature-256, which signs the body and nothing else. So a
// delivery is identified by its body, and the same body is a repeat, whatever
// X-GitHub-Delivery is. The type is X-GitHub-Event, which is not signed: an attacker who
// has recorded a request can send it again with another type, which makes an event if
// the first request made none. With TypeFromBody the type is signed, too.
func GitHub(secrets ...string) (Verifier, error) { return NewHMAC(GitHubHMAC(secrets...)) }

// GitHubHMAC is the scheme of GitHub, to be changed before it is passed to NewHMAC, for
// example to set TrustUnsignedID.
func GitHubHMAC(secrets ...string) HMAC {
	return HMAC{Secrets: secrets, Header: "X-Hub-Signature-256", Prefix: "sha256=",
		IDHeader: "X-GitHub-Delivery", TypeHeader: "X-GitHub-Event"}
}
