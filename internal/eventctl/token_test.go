package eventctl

import (
	"strings"
	"testing"
	"unicode"

	"eventsv2/access"
	"eventsv2/eventqueue/audit"
)

// TestTokensAreCreatedListedAndRevoked creates, lists and revokes tokens, and audits who did.
func TestTokensAreCreatedListedAndRevoked(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("token", "list").is(exitOK, "no tokens\n", "")
	var doc struct {
		ID, Token string
		Canvases  []string
	}
	c.run("token", "create", "--name", "shop", "--verbs", "emit, read", "--canvas", canvasA, "--for", "1h", "--json").is(exitOK, "", "").into(&doc)
	tokens := access.NewTokens("", c.pool)
	if identity, err := tokens.Identify(c.ctx, doc.Token); err != nil || identity.Name != "token:shop" || len(doc.Canvases) != 1 {
		t.Errorf("the token %+v is of %+v: %v", doc, identity, err)
	}
	secret := strings.TrimSpace(c.run("token", "create", "--name", "all", "--verbs", "all").is(exitOK, access.Prefix, "").out)
	if identity, err := tokens.Identify(c.ctx, secret); err != nil || !identity.MayEverywhere(access.Administer) {
		t.Errorf("the token of all is of %+v: %v", identity, err)
	}
	c.run("token", "revoke", doc.ID).is(exitOK, "revoked the token shop\n", "")
	c.run("token", "revoke", doc.ID).is(exitNotFound, "", "no token "+doc.ID+" that is not revoked")
	listed := c.run("token", "list").is(exitOK, "revoked", "")
	for _, want := range []string{"shop", "emit, read", canvasA, "all", "valid"} {
		listed.is(exitOK, want, "")
	}
	if strings.Contains(listed.out, access.Prefix) {
		t.Error("the list has secrets")
	}
	for _, wrong := range [][]string{
		{"create", "--verbs", "read"}, {"create", "--name", "a"}, {"create", "--name", "a", "--verbs", "fly"},
		{"create", "--name", "a", "--verbs", "read", "--canvas", "x"}, {"create", "--name", "a", "--verbs", "read", "--for", "-1h"}, {"revoke", "x"},
	} {
		c.run(append([]string{"token"}, wrong...)...).is(exitBadInput, "", "")
	}
	entries, err := audit.NewLog("", c.pool).List(c.ctx, audit.Filter{Action: "create_token"}, 0, 10)
	if err != nil || len(entries) != 2 || entries[0].Via != "eventctl" || !strings.HasPrefix(entries[0].Name, "os:") || entries[0].Source == "" {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}

// TestExistingTokenIsNotReplaced is not created again while it is valid: a script that is run again ends well.
func TestExistingTokenIsNotReplaced(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	once := []string{"token", "create", "--name", "local", "--verbs", "all", "--unless-exists"}
	secret := strings.TrimSpace(c.run(once...).is(exitOK, access.Prefix, "").out)
	if identity, err := access.NewTokens("", c.pool).Identify(c.ctx, secret); err != nil || identity.Name != "token:local" {
		t.Errorf("the token is of %+v, %v", identity, err)
	}
	again := c.run(once...).is(exitOK, "nothing was created: the token local, ", "")
	if strings.Contains(again.out, access.Prefix) {
		t.Errorf("it prints a secret: %s", again.out)
	}
	var doc struct {
		ID    string
		Token *string
	}
	c.run(append(once, "--json")...).is(exitOK, "", "").into(&doc)
	if doc.Token != nil || !strings.Contains(again.out, doc.ID) || doc.ID == "" {
		t.Errorf("as JSON it is %+v, and in words %q", doc, again.out)
	}
	if entries, err := audit.NewLog("", c.pool).List(c.ctx, audit.Filter{Action: "create_token"}, 0, 10); err != nil || len(entries) != 1 {
		t.Errorf("the audit log has %+v, %v: want one row", entries, err)
	}
	c.run("token", "revoke", doc.ID).is(exitOK, "", "")
	if renewed := strings.TrimSpace(c.run(once...).is(exitOK, access.Prefix, "").out); renewed == secret {
		t.Error("the token that was revoked is printed again")
	}
}

// TestTokenListHasNoControlCharacters, whatever SQL has written.
func TestTokenListHasNoControlCharacters(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`INSERT INTO access_tokens (id, name, hash, verbs, created_by) VALUES (gen_random_uuid(), E'n\x1b[2J\u009b', '\x01', ARRAY[E'read\x1b[2J\u009b31m'], E'me\x1b[2J')`)
	list := c.run("token", "list").is(exitOK, "", "")
	if strings.ContainsFunc(strings.ReplaceAll(list.out, "\n", ""), unicode.IsControl) {
		t.Errorf("%q", list.out)
	}
}
