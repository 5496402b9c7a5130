package httptarget

import (
	"net/http"

	"go.yaml.in/yaml/v3"

	"eventsv2/internal/yamlfile"
)

// Keys of what proves to a target who calls it.
const (
	keyOIDC     = "oidc"
	keyAudience = "audience"
	keyEnv      = "env"
)

// signatureScheme is the one scheme of signatures.
const signatureScheme = "standard"

// auth reads whether requests carry an identity token. Its audience is the origin of the
// target by default: that of a service of Cloud Run.
func (p *parser) auth(fields map[string]*yaml.Node, e *Entry) {
	n := yamlfile.Resolve(fields[keyAuth])
	if n == nil {
		return
	}
	kinds, ok := p.mapping(n, keyAuth, keyOIDC)
	if !ok {
		return
	}
	n = yamlfile.Resolve(kinds[keyOIDC])
	if n == nil {
		p.problems.add(yamlfile.Resolve(fields[keyAuth]).Line, "%s has no %s: write it like {oidc: {audience: https://example.com}}", keyAuth, keyOIDC)
		return
	}
	parts, ok := p.mapping(n, keyOIDC, keyAudience)
	if !ok || e.target.url == nil {
		return
	}
	if err := e.target.mayHaveToken(); err != nil {
		p.problems.add(yamlfile.Resolve(fields[keyURL]).Line, "%s %s", keyURL, err)
		return
	}
	e.Audience = e.target.origin()
	if audience, is := p.text(parts, keyAudience); is {
		e.Audience = audience.Value
	}
}

// headers reads names of headers, each with the variable that has its value: a secret
// itself must not be in a file, and if it is, it is never printed.
func (p *parser) headers(fields map[string]*yaml.Node, e *Entry) {
	n := yamlfile.Resolve(fields[keyHeaders])
	if n == nil {
		return
	}
	const hint = "write them like {X-Api-Key: {env: SHOP_API_KEY}}"
	entries, ok := yamlfile.Entries(n, keyHeaders, hint, p.problems.add)
	if !ok {
		return
	}
	if len(entries) == 0 {
		p.problems.add(n.Line, "%s is empty: %s", keyHeaders, hint)
	}
	e.HeaderVariables = map[string]string{}
	for _, entry := range entries {
		name := http.CanonicalHeaderKey(entry.Key.Value)
		if err := checkHeaderName(entry.Key.Value); err != nil {
			p.problems.add(entry.Key.Line, "%s: %s", keyHeaders, err)
			continue
		}
		if _, twice := e.HeaderVariables[name]; twice {
			p.problems.add(entry.Key.Line, "the header %s is there twice: capitals make no difference; remove one of the two", name)
		}
		if name == authorization && e.target.url != nil && e.target.provesItself(e.Audience) {
			p.problems.add(entry.Key.Line, "%s", twoAuthorizations)
		}
		e.HeaderVariables[name] = p.variable(entry)
	}
}

// variable reads the name of a variable, as {env: NAME}.
func (p *parser) variable(entry yamlfile.Entry) string {
	n := yamlfile.Resolve(entry.Value)
	if n.Kind != yaml.MappingNode {
		p.problems.add(n.Line, "the header %s is %s: put its value into the environment, and name the variable here, like {env: SHOP_API_KEY}",
			entry.Key.Value, yamlfile.KindOf(n))
		return ""
	}
	parts, ok := p.mapping(n, "a header", keyEnv)
	if !ok {
		return ""
	}
	value := yamlfile.Resolve(parts[keyEnv])
	if value == nil || value.Kind != yaml.ScalarNode || !variableName(value.Value) {
		p.problems.add(n.Line, "%s of the header %s is not the name of a variable: put its value into the environment, and name the variable here, in capitals",
			keyEnv, entry.Key.Value)
		return ""
	}
	return value.Value
}

// signature reads the secrets with which requests are signed.
func (p *parser) signature(fields map[string]*yaml.Node, e *Entry) {
	n := yamlfile.Resolve(fields[keySignature])
	if n == nil {
		return
	}
	parts, ok := p.mapping(n, keySignature, keyScheme, keySecrets)
	if !ok {
		return
	}
	for _, key := range []string{keyScheme, keySecrets} {
		if parts[key] == nil {
			p.problems.add(n.Line, "%s has no %s: write it like {scheme: standard, secrets: [SHOP_SIGNING_SECRET]}", keySignature, key)
		}
	}
	if scheme, is := p.text(parts, keyScheme); is && scheme.Value != signatureScheme {
		p.problems.add(scheme.Line, "%s %q cannot sign: it must be %s", keyScheme, scheme.Value, signatureScheme)
	}
	e.SigningVariables = p.secrets(parts)
}
