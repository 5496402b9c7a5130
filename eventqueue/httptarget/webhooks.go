package httptarget

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/internal/yamlfile"
	"eventsv2/webhook"
)

// Keys of a source of webhooks.
const (
	keySource          = "source"
	keyScheme          = "scheme"
	keySecrets         = "secrets"
	keyNames           = "names"
	keyHMAC            = "hmac"
	keyTypes           = "type_fields"
	keyTrustUnsignedID = "trust_unsigned_id"
	keyOverLimit       = "over_limit"
	keyServiceAccounts = "service_accounts"
	keyIssuer          = "issuer"
	keyKeys            = "keys"
)

// WebhookEntry is one source of webhooks. Package webhook knows what its scheme means;
// this package does not.
type WebhookEntry struct {
	// Line is where the entry begins, counted from 1.
	Line int
	// Source is the last part of the path; Canvas the one canvas that it is for, zero
	// means all.
	Source string
	Canvas eventqueue.CanvasID
	// Scheme is the name of the way in which requests are verified, Secrets are names of
	// environment variables. Without Secrets, OIDC says which tokens are accepted.
	Scheme  string
	Secrets []string
	OIDC    *webhook.OIDC
	// HMAC are the fields of a scheme of the sender's own.
	HMAC map[string]string
	// TypeFields are the fields of the body with the type of event; none means those of
	// the scheme.
	TypeFields []string
	// TrustUnsignedID means that repeats are recognised by an id that is not signed.
	TrustUnsignedID bool
	// RefuseOverLimit means that requests for a canvas over its rate limit are refused. Otherwise their events wait.
	RefuseOverLimit bool
	// Key is the handler of the events. With Names, which map the sender's types of
	// event to names of handlers, its Name is empty, and other types are ignored.
	Key   eventqueue.HandlerKey
	Names map[string]string
}

// hmacKeys are the keys of an hmac mapping.
func hmacKeys() []string {
	return []string{"header", "prefix", "algorithm", "encoding", "signed", "timestamp_header", "id_header", "type_header"}
}

func (p *parser) webhooks(fields map[string]*yaml.Node) []WebhookEntry {
	list := yamlfile.Resolve(fields[keyWebhooks])
	switch {
	case list == nil:
		return nil
	case list.Kind != yaml.SequenceNode:
		p.problems.add(list.Line, "%q is %s: make it a list, one source after each dash", keyWebhooks, yamlfile.KindOf(list))
		return nil
	}
	entries := make([]WebhookEntry, len(list.Content))
	seen := map[string]int{}
	for i, item := range list.Content {
		e := p.webhook(item)
		entries[i] = e
		at := e.Source + " " + e.Canvas.String()
		if first, taken := seen[at]; taken && e.Source != "" {
			p.problems.add(e.Line, "source %s is there already, in line %d: remove one of the two", e.Source, first)
		}
		seen[at] = e.Line
	}
	return entries
}

func (p *parser) webhook(item *yaml.Node) WebhookEntry {
	e := WebhookEntry{Line: item.Line}
	fields, ok := p.mapping(yamlfile.Resolve(item), "a source", keySource, keyScheme, keyCanvas, keySecrets, keyOIDC, keyHMAC, keyTypes, keyTrustUnsignedID, keyOverLimit, keyModule, keyName, keyNames, keyModifier)
	if !ok {
		return e
	}
	for _, key := range []string{keySource, keyScheme, keyModule, keyModifier} {
		if fields[key] == nil {
			p.problems.add(e.Line, "%s is missing: add it to this source", key)
		}
	}
	if fields[keySecrets] == nil && fields[keyOIDC] == nil {
		p.problems.add(e.Line, "%s is missing: add it to this source, or %s if its requests carry a token", keySecrets, keyOIDC)
	}
	p.name(fields, keySource, &e.Source)
	p.name(fields, keyScheme, &e.Scheme)
	p.name(fields, keyModule, &e.Key.Module)
	p.name(fields, keyModifier, &e.Key.Modifier)
	p.canvas(fields, &e.Canvas)
	e.Secrets = p.secrets(fields)
	e.OIDC = p.oidc(fields)
	e.TypeFields = p.typeFields(fields)
	e.TrustUnsignedID = p.flag(fields, keyTrustUnsignedID)
	e.RefuseOverLimit = p.overLimit(fields)
	if (fields[keyName] == nil) == (fields[keyNames] == nil) {
		p.problems.add(e.Line, "give %s for all events or %s for each type, and not both", keyName, keyNames)
	}
	p.name(fields, keyName, &e.Key.Name)
	e.Names = p.texts(fields, keyNames)
	for typ, name := range e.Names {
		if _, err := eventqueue.CheckHandler(eventqueue.HandlerKey{Module: "_", Name: name, Modifier: "_"}); err != nil {
			p.problems.add(yamlfile.Resolve(fields[keyNames]).Line, "the name for %q %s", typ, err)
		}
	}
	if fields[keyHMAC] != nil {
		if _, ok := p.mapping(yamlfile.Resolve(fields[keyHMAC]), keyHMAC, hmacKeys()...); ok {
			e.HMAC = p.texts(fields, keyHMAC)
		}
	}
	return e
}

// secrets reads names of variables: a secret itself must not be in a file, and if it is,
// it is never printed.
func (p *parser) secrets(fields map[string]*yaml.Node) (names []string) {
	n := yamlfile.Resolve(fields[keySecrets])
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.problems.add(n.Line, "%s is no list: write the names of variables of the environment like [GITHUB_SECRET]", keySecrets)
		return nil
	}
	for i, item := range n.Content {
		item = yamlfile.Resolve(item)
		if item.Kind != yaml.ScalarNode || !variableName(item.Value) {
			p.problems.add(item.Line, "secret %d is not the name of a variable: put the secret into the environment, and name the variable here, in capitals", i+1)
			continue
		}
		if slices.Contains(names, item.Value) {
			p.problems.add(item.Line, "secret %s is there twice: name the other variable, or remove one of the two", item.Value)
		}
		names = append(names, item.Value)
	}
	return names
}

// oidc reads which tokens are accepted; what makes no sense, package webhook says.
func (p *parser) oidc(fields map[string]*yaml.Node) *webhook.OIDC {
	n := yamlfile.Resolve(fields[keyOIDC])
	if n == nil {
		return nil
	}
	of, ok := p.mapping(n, keyOIDC, keyAudience, keyServiceAccounts, keyIssuer, keyKeys)
	if !ok {
		return nil
	}
	accepted := &webhook.OIDC{}
	for _, part := range []struct {
		key  string
		into *string
	}{{keyAudience, &accepted.Audience}, {keyIssuer, &accepted.Issuer}, {keyKeys, &accepted.Keys}} {
		if text, ok := p.text(of, part.key); ok {
			*part.into = text.Value
		}
	}
	accepted.ServiceAccounts = p.list(of, keyServiceAccounts, "e-mails like [push@my-project.iam.gserviceaccount.com]", "e-mail")
	return accepted
}

// typeFields reads where the body of a request has its type.
func (p *parser) typeFields(fields map[string]*yaml.Node) []string {
	n := yamlfile.Resolve(fields[keyTypes])
	if n != nil && n.Kind == yaml.SequenceNode && fields[keyNames] == nil {
		p.problems.add(n.Line, "%s goes with %s, which say what becomes of each type", keyTypes, keyNames)
	}
	return p.list(fields, keyTypes, "fields of the body like [object_kind] or [event.type]", "field")
}

// list reads different texts. example shows them, and item names one of them, in messages.
func (p *parser) list(fields map[string]*yaml.Node, key, example, item string) (texts []string) {
	n := yamlfile.Resolve(fields[key])
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.problems.add(n.Line, "%s is no list: write %s", key, example)
		return nil
	}
	for i, node := range n.Content {
		name := fmt.Sprintf("%s %d of %s", item, i+1, key)
		if text, ok := p.text(map[string]*yaml.Node{name: node}, name); ok {
			if slices.Contains(texts, text.Value) {
				p.problems.add(text.Line, "%s: %q is there twice: remove one of the two", key, text.Value)
			}
			texts = append(texts, text.Value)
		}
	}
	return texts
}

// flag reads true or false; an absent one is false.
func (p *parser) flag(fields map[string]*yaml.Node, key string) (on bool) {
	n := yamlfile.Resolve(fields[key])
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&on) != nil {
		p.problems.add(n.Line, "%s is %s: write true or false", key, yamlfile.KindOf(n))
		return false
	}
	return on
}

// overLimit reads what becomes of requests over the rate limit of their canvas; by default their events wait.
func (p *parser) overLimit(fields map[string]*yaml.Node) (refuse bool) {
	text, ok := p.text(fields, keyOverLimit)
	if !ok || text.Value == "wait" {
		return false
	}
	if text.Value != "refuse" {
		p.problems.add(text.Line, "%s is %q: write wait, which accepts the events and lets them wait, or refuse, which answers 429", keyOverLimit, text.Value)
	}
	return true
}

func variableName(s string) bool {
	for i, c := range []byte(s) {
		if (c < 'A' || c > 'Z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// texts reads a mapping of texts to texts.
func (p *parser) texts(fields map[string]*yaml.Node, key string) map[string]string {
	n := yamlfile.Resolve(fields[key])
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.problems.add(n.Line, "%s is %s: write it as keys and values", key, yamlfile.KindOf(n))
		return nil
	}
	texts := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		from := n.Content[i].Value
		if _, twice := texts[from]; twice {
			p.problems.add(n.Content[i].Line, "%q is there twice: remove one of the two", from)
		}
		value, ok := p.text(map[string]*yaml.Node{fmt.Sprintf("%s of %s", from, key): n.Content[i+1]}, fmt.Sprintf("%s of %s", from, key))
		texts[from] = ""
		if ok {
			texts[from] = value.Value
		}
	}
	return texts
}
