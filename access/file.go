package access

import (
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/internal/yamlfile"
)

// maxFileBytes is how long an access file may be.
const maxFileBytes = 1 << 20

// LoadFile reads the issuers of an access file. The error has the first hundred mistakes, each with its line.
func LoadFile(path string) ([]*Issuer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the access file: %w", err)
	}
	issuers, err := ParseFile(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return issuers, nil
}

// ParseFile is LoadFile for the text of a file.
func ParseFile(data []byte) (issuers []*Issuer, err error) {
	var mistakes yamlfile.Mistakes
	root := yamlfile.Document(yamlfile.Source{Data: data, MaxBytes: maxFileBytes, Empty: "list issuers", Second: "an access file is one document"}, mistakes.Report)
	if root != nil {
		issuers = readIssuers(root, mistakes.Report)
	}
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	return issuers, nil
}

func readIssuers(root *yaml.Node, report yamlfile.Report) (issuers []*Issuer) {
	fields, ok := yamlfile.Mapping(root, "the file", report, "issuers")
	if !ok {
		return nil
	}
	list := elements(fields["issuers"], root.Line, "issuers", report)
	for _, n := range list {
		if issuer := readIssuer(n, report); issuer != nil {
			issuers = append(issuers, issuer)
		}
	}
	return issuers
}

func readIssuer(n *yaml.Node, report yamlfile.Report) *Issuer {
	fields, ok := yamlfile.Mapping(n, "an issuer", report, "issuer", "iap", "audience", "tokens_for", "grants")
	if !ok {
		return nil
	}
	var mappings []Mapping
	for _, grant := range elements(fields["grants"], n.Line, "grants", report) {
		mappings = append(mappings, readMapping(grant, report))
	}
	audience := text(fields["audience"], "audience", report)
	var issuer *Issuer
	var err error
	switch iap := text(fields["iap"], "iap", report); {
	case iap != "" && iap != "true":
		report(fields["iap"].Line, "iap: %q is not true: leave it out for an issuer of OpenID Connect", iap)
		return nil
	case iap == "true" && fields["issuer"] != nil:
		report(n.Line, "issuer and iap exclude each other: give one of them")
		return nil
	case iap == "true":
		issuer, err = NewIAP(audience, mappings)
	default:
		issuer, err = NewIssuer(text(fields["issuer"], "issuer", report), audience, mappings)
	}
	if err != nil {
		report(n.Line, "%v", err)
		return nil
	}
	if lasts := text(fields["tokens_for"], "tokens_for", report); lasts != "" {
		if issuer.TokensFor, err = time.ParseDuration(lasts); err != nil || issuer.TokensFor <= 0 {
			report(fields["tokens_for"].Line, "tokens_for: %q is no time: write hours, as in 720h", lasts)
		}
	}
	return issuer
}

func readMapping(n *yaml.Node, report yamlfile.Report) (m Mapping) {
	fields, ok := yamlfile.Mapping(n, "a grant", report, "claim", "values", "canvases", "verbs")
	if !ok {
		return m
	}
	m.Claim = text(fields["claim"], "claim", report)
	for _, value := range elements(fields["values"], n.Line, "values", report) {
		m.Values = append(m.Values, text(value, "values", report))
	}
	if canvases := yamlfile.Resolve(fields["canvases"]); canvases == nil || canvases.Kind != yaml.ScalarNode || canvases.Value != "all" {
		m.Canvases = []eventqueue.CanvasID{}
		for _, value := range elements(fields["canvases"], n.Line, "canvases", report) {
			canvas, err := eventqueue.ParseCanvasID(text(value, "canvases", report))
			if err != nil {
				report(value.Line, "canvases: %v, or all in place of the list", err)
			}
			m.Canvases = append(m.Canvases, canvas)
		}
	}
	for _, value := range elements(fields["verbs"], n.Line, "verbs", report) {
		m.Verbs = append(m.Verbs, Verb(text(value, "verbs", report)))
	}
	return m
}

// elements returns those of a list.
func elements(n *yaml.Node, line int, what string, report yamlfile.Report) []*yaml.Node {
	list := yamlfile.Resolve(n)
	if list == nil || yamlfile.IsNull(list) {
		report(line, "%s: is missing", what)
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		report(list.Line, "%s: is %s and not a list", what, yamlfile.KindOf(list))
		return nil
	}
	return list.Content
}

// text returns a text, "" for one that is absent.
func text(n *yaml.Node, what string, report yamlfile.Report) string {
	value := yamlfile.Resolve(n)
	if value == nil || yamlfile.IsNull(value) {
		return ""
	}
	if value.Kind != yaml.ScalarNode {
		report(value.Line, "%s: is %s and not a text", what, yamlfile.KindOf(value))
		return ""
	}
	return value.Value
}
