package httptarget

import (
	"fmt"
	"strings"
	"testing"
)

// entry writes a handler without mistakes, apart from those in extra.
func entry(extra string) string {
	return "handlers:\n  - module: M\n    name: n\n    modifier: _\n    url: http://example.com\n" + extra
}

// hook writes a source without mistakes, apart from those in fields.
func hook(fields string) string {
	return "webhooks:\n  - {source: s, scheme: github, module: M, modifier: _, " + fields + "}\n"
}

// events writes handlers, each into a line.
func events(handlers ...string) string {
	return "handlers:\n  - " + strings.Join(handlers, "\n  - ") + "\n"
}

// numbered returns n texts with the numbers from 0.
func numbered(n int, format string) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf(format, i))
	}
	return texts
}

// badFiles are files, each with the beginnings of all messages that it must cause.
var badFiles = []struct {
	name string
	text string
	want []string
}{
	{"nothing", "", []string{"f:1: the file is empty"}},
	{"comments only", "# one\n# two\n", []string{"f:1: the file is empty"}},
	{"an empty document", "\n---\n", []string{"f:1: the file is empty"}},
	{"null", "~\n", []string{"f:1: the file is empty"}},
	{"a word", "handlers\n", []string{"f:1: the file is a text: write it as keys and values"}},
	{"a list", "- handlers\n", []string{"f:1: the file is a list"}},
	{"no handlers, by null", "\nhandlers:\n", []string{"f:2: there are no handlers"}},
	{"no handlers, by an empty list", "handlers: []\n", []string{"f:1: there are no handlers"}},
	{"an empty mapping", "{}\n", []string{"f:1: there are no handlers"}},
	{"handlers is a word", "handlers: none\n", []string{`f:1: "handlers" is a text: make it a list`}},
	{"handlers is a mapping", "handlers:\n  module: M\n", []string{`f:2: "handlers" is a mapping: make it a list`}},
	{"a handler is a word", "handlers:\n  - M/n/_\n  -\n", []string{"f:2: a handler is a text", "f:3: a handler is empty"}},
	{"unknown key at the top", "handler: []\n", []string{`f:1: unknown key "handler": the keys of the file are handlers, events, webhooks, subscriptions`}},
	{"unknown key beside handlers", entry("version: 1\n"), []string{`f:6: unknown key "version"`}},
	{"unknown key in a handler", entry("    retries: 1\n"), []string{`f:6: unknown key "retries": the keys of a handler are module, name, modifier, event, canvas, url, timeout, max_retries, backoff, order_hold, max_snoozes, min_snooze, breaker_after, auth, headers, signature, answer, batch`}},
	{"unknown key in capitals", entry("    Timeout: 1s\n"), []string{`f:6: unknown key "Timeout"`}},
	{"unknown key in backoff", entry("    backoff: {base: 1s, max: 2s, jitter: 1}\n"), []string{`f:6: unknown key "jitter": the keys of backoff are base, max`}},
	{"a batch without a size", entry("    batch: {wait: 1s}\n"), []string{"f:6: batch has no size: write it like {size: 100, wait: 200ms}"}},
	{"a batch of one", entry("    batch: {size: 1}\n"), []string{"f:6: batch.size is 1: it is from 2 to 10000; without batch each event is a request"}},
	{"a batch of too many", entry("    batch: {size: 10001}\n"), []string{"f:6: batch.size 10001 cannot be used: write a whole number from 0 to 10000"}},
	{"a batch that waits too long", entry("    batch: {size: 2, wait: 31s}\n"), []string{"f:6: batch.wait is 31s: it is at most 30s, and half of the timeout of a run"}},
	{"a batch that waits longer than a run may last", entry("    timeout: 1s\n    batch: {size: 2, wait: 2s}\n"), []string{"f:7: batch.wait is 2s: it is at most 500ms"}},
	{"a batch with an unknown key", entry("    batch: {size: 2, linger: 1s}\n"), []string{`f:6: unknown key "linger": the keys of batch are size, wait`}},
	{"a batch whose answers are results", entry("    answer: result\n    batch: {size: 2}\n"), []string{"f:7: batch and answer are both given"}},
	{"a batch whose answers are emitted", entry("    answer: cloudevents\n    batch: {size: 2}\n"), []string{"f:7: batch and answer are both given"}},
	{"merge key", entry("    <<: {timeout: 1s}\n"), []string{`f:6: unknown key "<<"`}},
	{"a key that is a list", entry("    ? [a]\n    : b\n"), []string{"f:6: a key of a handler is a list"}},
	{"a key twice", entry("    url: http://example.org\n"), []string{`f:6: "url" is there twice, first in line 5`}},
	{"an unknown key twice", entry("    x: 1\n    x: 2\n"), []string{`f:6: unknown key "x"`, `f:7: "x" is there twice, first in line 6`}},
	{"webhooks is a word", entry("webhooks: none\n"), []string{`f:6: "webhooks" is a text: make it a list`}},
	{"a source is a word", entry("webhooks: [github]\n"), []string{"f:6: a source is a text"}},
	{"a source without anything", entry("webhooks:\n  - {canvas: x}\n"), []string{
		"f:7: source is missing", "f:7: scheme is missing", "f:7: module is missing", "f:7: modifier is missing", "f:7: secrets is missing: add it to this source, or oidc",
		`f:7: canvas "x" is not a uuid`, "f:7: give name for all events or names for each type",
	}},
	{"a source with both names", entry(hook("names: {a: b}, name: n, secrets: [A]")), []string{"f:7: give name for all events or names for each type"}},
	{"a secret in the file", entry(hook("name: n, secrets: [hunter2]")), []string{"f:7: secret 1 is not the name of a variable"}},
	{"no secrets", entry(hook("name: n, secrets: []")), []string{"f:7: secrets is no list"}},
	{"a secret twice", entry(hook("name: n, secrets: [A, B, A]")), []string{"f:7: secret A is there twice"}},
	{"a field of the type twice", entry(hook("names: {a: b}, secrets: [A], type_fields: [a, a]")), []string{`f:7: type_fields: "a" is there twice`}},
	{"a secret that is no list", entry(hook("name: n, secrets: A")), []string{"f:7: secrets is no list"}},
	{"types without names", entry(hook("name: n, secrets: [A], type_fields: [a]")), []string{"f:7: type_fields goes with names"}},
	{"types that are no list", entry(hook("names: {a: b}, secrets: [A], type_fields: a")), []string{"f:7: type_fields is no list"}},
	{"a type that is a number", entry(hook("names: {a: b}, secrets: [A], type_fields: [5]")), []string{"f:7: field 1 of type_fields is a number"}},
	{"an unknown way over the limit", entry(hook("name: n, secrets: [A], over_limit: drop")), []string{`f:7: over_limit is "drop": write wait`}},
	{"trust that is a text", entry(hook("name: n, secrets: [A], trust_unsigned_id: maybe")), []string{"f:7: trust_unsigned_id is a text: write true or false"}},
	{"a bad name of a type", entry(hook("names: {push: \"a\\tb\"}, secrets: [A]")), []string{"f:7: the name for \"push\" \"a\\tb\" holds the control character"}},
	{"names that are a list", entry(hook("names: [a], secrets: [A]")), []string{"f:7: names is a list"}},
	{"a number for a name", entry(hook("names: {push: 5}, secrets: [A]")), []string{"f:7: push of names is a number", "f:7: the name for \"push\" is empty"}},
	{"a type twice", entry(hook("names: {a: b, a: c}, secrets: [A]")), []string{`f:7: "a" is there twice`}},
	{"an unknown key of oidc", entry(hook("name: n, oidc: {aud: X}")), []string{`f:7: unknown key "aud": the keys of oidc are audience, service_accounts, issuer, keys`}},
	{"an audience that is a list", entry(hook("name: n, oidc: {audience: [a]}")), []string{"f:7: audience is a list: give it one value"}},
	{"service accounts that are a text", entry(hook("name: n, oidc: {audience: a, service_accounts: a@b}")), []string{"f:7: service_accounts is no list: write e-mails like"}},
	{"a service account twice", entry(hook("name: n, oidc: {audience: a, service_accounts: [a@b, a@b]}")), []string{`f:7: service_accounts: "a@b" is there twice`}},
	{"a service account that is a number", entry(hook("name: n, oidc: {audience: a, service_accounts: [5]}")), []string{"f:7: e-mail 1 of service_accounts is a number"}},
	{"an unknown key of hmac", entry(hook("name: n, secrets: [A], hmac: {headers: X}")), []string{`f:7: unknown key "headers"`}},
	{"a source twice", entry(hook("name: n, secrets: [A]") + "  - {source: s, scheme: github, module: M, modifier: _, name: n, secrets: [A]}\n"),
		[]string{"f:8: source s is there already, in line 7"}},
	{"subscriptions is a word", entry("subscriptions: orders\n"), []string{`f:6: "subscriptions" is a text: make it a list, one subscription after each dash`}},
	{"a subscription without anything", entry("subscriptions:\n  - {canvas: x}\n"), []string{
		"f:7: subscription is missing", "f:7: module is missing", "f:7: name is missing", "f:7: modifier is missing", `f:7: canvas "x" is not a uuid`,
	}},
	{"a subscription of all canvases", entry("subscriptions:\n  - {subscription: s, module: M, name: n, modifier: _}\n"), []string{"f:7: canvas is missing: add it to this subscription"}},
	{"types of messages", entry("subscriptions:\n  - {subscription: s, canvas: 0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11, module: M, names: {a: b}, modifier: _}\n"),
		[]string{`f:7: unknown key "names"`, "f:7: name is missing"}},
	{"a subscription twice", entry("subscriptions:\n  - &s {subscription: s, canvas: 0b9f5a3e-6b3a-4a52-9f0c-0d8b6a1f7c11, module: M, name: n, modifier: _}\n  - *s\n"),
		[]string{"f:8: subscription s is there already, in line 7"}},
	{"auth without its kind", entry("    auth: {}\n"), []string{"f:6: auth has no oidc: write it like {oidc: "}},
	{"auth of another kind", entry("    auth: {basic: x}\n"), []string{`f:6: unknown key "basic": the keys of auth are oidc`, "f:6: auth has no oidc"}},
	{"auth that is a word", entry("    auth: oidc\n"), []string{"f:6: auth is a text: write it as keys and values; the keys are oidc"}},
	{"a token over plain HTTP", entry("    auth: {oidc: {}}\n"), []string{"f:5: url is not https: an identity token would be sent unencrypted"}},
	{"a token beside a password", "handlers:\n  - {module: M, name: n, modifier: _, url: 'https://u:s3cret@a', auth: {oidc: {}}}\n", []string{"f:2: url has a user, and an identity token takes the same header"}},
	{"an audience that is a number", "handlers:\n  - {module: M, name: n, modifier: _, url: https://a, auth: {oidc: {audience: 5}}}\n", []string{"f:2: audience is a number: put it into quotes"}},
	{"no headers", entry("    headers: {}\n"), []string{"f:6: headers is empty: write them like {X-Api-Key: {env: SHOP_API_KEY}}"}},
	{"headers that are a list", entry("    headers: [X-Api-Key]\n"), []string{"f:6: headers is a list: write it as keys and values; write them like"}},
	{"a value of a header in the file", entry("    headers: {X-Api-Key: s3cret}\n"), []string{"f:6: the header X-Api-Key is a text: put its value into the environment"}},
	{"a value in place of a variable", entry("    headers: {X-Api-Key: {env: s3cret}}\n"), []string{"f:6: env of the header X-Api-Key is not the name of a variable"}},
	{"no variable", entry("    headers: {X-Api-Key: {}}\n"), []string{"f:6: env of the header X-Api-Key is not the name of a variable"}},
	{"a header of the worker", entry("    headers:\n      ce-id: {env: A}\n      host: {env: A}\n      'a b': {env: A}\n"), []string{
		"f:7: headers: ce-id begins with Ce-", "f:8: headers: host is set by the worker", `f:9: headers: "a b" is no name of a header`}},
	{"a header twice", entry("    headers: {X-A: {env: A}, x-a: {env: A}}\n"), []string{"f:6: the header X-A is there twice: capitals make no difference"}},
	{"two authorizations", "handlers:\n  - {module: M, name: n, modifier: _, url: https://a, auth: {oidc: {}}, headers: {authorization: {env: A}}}\n", []string{"f:2: Authorization is set twice"}},
	{"half a signature", entry("    signature: {secrets: [A]}\n"), []string{"f:6: signature has no scheme: write it like {scheme: standard"}},
	{"other half of a signature", entry("    signature: {scheme: standard}\n"), []string{"f:6: signature has no secrets"}},
	{"an unknown signature", entry("    signature: {scheme: github, secrets: [A]}\n"), []string{`f:6: scheme "github" cannot sign: it must be standard`}},
	{"a signing secret in the file", entry("    signature: {scheme: standard, secrets: [whsec_s3cret]}\n"), []string{"f:6: secret 1 is not the name of a variable"}},
	{"handlers twice", entry("handlers: []\n"), []string{`f:6: "handlers" is there twice, first in line 1`}},
	{"all missing", "handlers:\n  - timeout: 1s\n", []string{
		"f:2: module is missing", "f:2: name is missing", "f:2: modifier is missing", "f:2: url is missing",
	}},
	{"all empty", "handlers:\n  - module:\n    name: ''\n    modifier: ~\n    url: \"\"\n    canvas:\n    timeout:\n    max_retries:\n    backoff:\n", []string{
		"f:2: module is empty", "f:3: name is empty", "f:4: modifier is empty", "f:5: url is empty", "f:6: canvas is empty",
		"f:7: timeout is empty", "f:8: max_retries is empty", "f:9: backoff is empty",
	}},
	{"wrong types", "handlers:\n  - module: 5\n    name: [n]\n    modifier: true\n    url: {a: b}\n    canvas: 2024-02-29\n", []string{
		"f:2: module is a number: put it into quotes", "f:3: name is a list", "f:4: modifier is a truth value: put it into quotes",
		"f:5: url is a mapping", "f:6: canvas is a date",
	}},
	{"own tag", entry("    timeout: !x 1s\n"), []string{"f:6: timeout is of type !x"}},
	{"control character", "handlers:\n  - {module: M, name: n, url: http://a, modifier: \"a\\tb\"}\n", []string{`f:2: modifier "a\tb" holds the control character U+0009`}},
	{"long name", "handlers:\n  - {module: M, modifier: _, url: http://a, name: " + strings.Repeat("n", 256) + "}\n", []string{"f:2: name is 256 bytes long: the limit is 255"}},
	{"canvas is no uuid", entry("    canvas: a713f8e6\n"), []string{`f:6: canvas "a713f8e6" is not a uuid`}},
	{"canvas is zero", entry("    canvas: 00000000-0000-0000-0000-000000000000\n"), []string{"f:6: canvas is all zeros"}},
	{"timeout without unit", entry("    timeout: 30\n"), []string{"f:6: timeout is a number without a unit"}},
	{"timeout of zero", entry("    timeout: 0s\n"), []string{"f:6: timeout is 0s: it must be more than 0"}},
	{"negative timeout", entry("    timeout: -1s\n"), []string{"f:6: timeout is -1s: it must be more than 0"}},
	{"timeout of years", entry("    timeout: 8785h\n"), []string{"f:6: timeout is 8785h0m0s: the limit is 8784h0m0s"}},
	{"timeout in words", entry("    timeout: 1 day\n"), []string{`f:6: timeout "1 day" is not a duration`}},
	{"order_hold without unit", entry("    order_hold: 0\n"), []string{"f:6: order_hold is a number without a unit"}},
	{"negative order_hold", entry("    order_hold: -1s\n"), []string{"f:6: order_hold is -1s: it must not be negative; 0s means that"}},
	{"order_hold of years", entry("    order_hold: 8785h\n"), []string{"f:6: order_hold is 8785h0m0s: the limit is 8784h0m0s"}},
	{"negative retries", entry("    max_retries: -1\n"), []string{"f:6: max_retries is -1: it must not be negative"}},
	{"retries in quotes", entry("    max_retries: '5'\n"), []string{"f:6: max_retries is a text: write a whole number"}},
	{"half a retry", entry("    max_retries: 0.5\n"), []string{"f:6: max_retries is a number: write a whole number"}},
	{"too many retries", entry("    max_retries: 2147483648\n"), []string{"f:6: max_retries 2147483648 cannot be used"}},
	{"hexadecimal retries", entry("    max_retries: 0x10\n"), []string{"f:6: max_retries 0x10 cannot be used"}},
	{"too many snoozes", entry("    max_snoozes: 30001\n"), []string{"f:6: max_snoozes 30001 cannot be used: write a whole number from 0 to 30000"}},
	{"negative snoozes", entry("    max_snoozes: -1\n"), []string{"f:6: max_snoozes is -1: it must not be negative; 0 means that a snooze is a failed attempt"}},
	{"negative breaker", entry("    breaker_after: -1\n"), []string{"f:6: breaker_after is -1: it must not be negative; 0 means no circuit breaker"}},
	{"long least snooze", entry("    min_snooze: 61s\n"), []string{"f:6: min_snooze is 1m1s: it must be at most 1m"}},
	{"no least snooze", entry("    min_snooze: 0s\n"), []string{"f:6: min_snooze is 0s: it must be more than 0"}},
	{"list of retries", entry("    max_retries: [1]\n"), []string{"f:6: max_retries is a list"}},
	{"backoff is a duration", entry("    backoff: 10s\n"), []string{"f:6: backoff is a text: write it as keys and values; the keys are base, max"}},
	{"half a backoff", entry("    backoff:\n      base: 10s\n"), []string{"f:7: backoff has no max"}},
	{"other half of a backoff", entry("    backoff: {max: 10s}\n"), []string{"f:6: backoff has no base"}},
	{"backoff the wrong way round", entry("    backoff: {base: 10m, max: 10s}\n"), []string{"f:6: backoff has a base of 10m0s, which is more than its max of 10s"}},
	{"bad durations in backoff", entry("    backoff:\n      base: 0s\n      max: soon\n"), []string{"f:7: base is 0s", `f:8: max "soon"`}},
	{"doubled handler", entry("  - url: http://example.org\n    name: n\n    module: 'M'\n    modifier: _\n"), []string{"f:6: handler M/n/_ has a target already, in line 2"}},
	{
		"doubled handler of a canvas",
		entry("    canvas: A713F8E6-1E3C-4F7F-9D5C-2F1B6A3E8D10\n  - {module: M, name: n, modifier: _, url: http://a, canvas: a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10}\n"),
		[]string{"f:7: handler M/n/_ of canvas a713f8e6-1e3c-4f7f-9d5c-2f1b6a3e8d10 has a target already, in line 2"},
	},
	{"doubled handler by alias", "handlers:\n  - &a {module: M, name: n, modifier: _, url: http://a}\n  - *a\n  - *a\n", []string{"f:3: handler M/n/_ has a target already, in line 2", "f:4: handler M/n/_"}},
	{"an unknown answer", entry("    answer: json\n"), []string{`f:6: answer is "json": write cloudevents, which emits the events in the answers of the target, or result, which keeps an answer as the result of its event, or leave it out`}},
	{"an answer that is a truth value", entry("    answer: true\n"), []string{"f:6: answer is a truth value: put it into quotes"}},
	{"an event beside a module", entry("    event: M.n\n"), []string{
		"f:2: module is given beside event: remove it", "f:4: modifier is given beside event: remove it"}},
	{"an event without anything", "handlers:\n  - event: 5\n", []string{"f:2: name is missing", "f:2: url is missing", "f:2: event is a number: put it into quotes"}},
	{"no handling key", "handlers:\n  - {event: order..placed, name: a, url: http://a}\n", []string{`f:2: event "order..placed": a part is empty`}},
	{"a name with dots", "handlers:\n  - {event: order.placed, name: a.b, url: http://a}\n", []string{`f:2: name is "a.b": it may have letters, digits, _ and -`}},
	{"events is a word", entry("events: order\n"), []string{`f:6: "events" is a text: make it a list of handling keys`}},
	{"a declared event is no key", entry("events: [5, order/placed]\n"), []string{"f:6: an event is a number", `f:6: an event "order/placed": a part is`}},
	{"an event is declared twice", entry("events: [M.x, M.x]\n"), []string{"f:6: the event M.x is there twice, first in line 6", "f:6: the event M.x has no handler"}},
	{"an event without a handler", events("{event: order.placed, name: a, url: http://a}") + "events: [order.cancelled]\n",
		[]string{`f:3: the event order.cancelled has no handler, and its parents have none: add one with "event: order.cancelled"`}},
	{"an event whose handler has a mistake", events("{event: order, name: a}") + "events: [order.cancelled]\n", []string{"f:2: url is missing"}},
	{"an event that has a handler already", events("{event: order.placed, name: a, url: http://a}", "{module: order, name: placed, modifier: _, url: http://b}"),
		[]string{`f:3: handler order/placed/_ is that of the event order.placed, which has handlers by "event", as in line 2: give this one a name of its own, and "event: order.placed" in place`}},
	{"a handler like an action", events("{event: order.placed, name: a, url: http://a}", "{event: order, name: placed, url: http://b}"),
		[]string{"f:3: handler placed is called like the event order.placed, in line 2, so that a pause could not distinguish them"}},
	{"a handler of the parent, too", events("{event: order, name: a, url: http://a}", "{event: order.placed, name: a, url: http://b}"),
		[]string{"f:3: handler order/a/order.placed has a target already, in line 2: remove one of the two, or give it another name: a handler of a parent gets the event as well"}},
	{"a handler of an event twice", events("&a {event: order, name: a, url: http://a}", "*a"), []string{"f:3: handler order/a/order has a target already, in line 2"}},
	{"a handler like that of an event", events("{event: order, name: a, url: http://a}", "{module: order, name: a, modifier: order, url: http://b}"),
		[]string{"f:2: handler a of the event order has the module and the name of the handler in line 3, so that a pause of order/a would hold both: give one of the two another name"}},
	{"a plain handler with the names of one of an event", events("{event: order.placed, name: mail, url: http://a}", "{module: order, name: mail, modifier: _, url: http://b}"),
		[]string{"f:2: handler mail of the event order.placed has the module and the name of the handler in line 3"}},
	{"a plain handler like that of a parent, on a canvas", events("{module: order, name: mail, modifier: order.placed, canvas: A713F8E6-1E3C-4F7F-9D5C-2F1B6A3E8D10, url: http://b}",
		"{event: order.placed, name: a, url: http://a}", "{event: order, name: mail, url: http://a}"),
		[]string{"f:4: handler mail of the event order has the module and the name of the handler in line 2"}},
	{"nothing in any list", "events: []\nwebhooks: []\n", []string{"f:1: there are no handlers: list at least one"}},
	{"too many handlers of an event", events(numbered(51, "{event: order, name: a%d, url: http://a}")...), []string{"f:2: the event order has 51 handlers, those of its parents included: the limit is 50"}},
	{"too many pairs", events(numbered(40, "{event: order, name: a%d, url: http://a}")...) + "events:\n  - " + strings.Join(numbered(250, "order.e%d"), "\n  - ") + "\n",
		[]string{"f:142: with the event order.e99 there are more than 10000 pairs of an event and a handler"}},
	{"alias of oneself", "handlers: &a\n  - *a\n", []string{"f:1: a handler is a list"}},
	{"two documents", entry("---\nhandlers: []\n"), []string{"f:6: a second document begins here"}},
	{"broken second document", entry("---\na: b: c\n"), []string{"f:7: not YAML: mapping values are not allowed"}},
	{"many at once, in the order of lines", "handlers:\n  - name: n\n    url: ftp://a\n    max_retries: -1\nx: 1\n", []string{
		"f:2: module is missing", "f:2: modifier is missing", "f:3: url is not a complete http or https URL", "f:4: max_retries is -1", `f:5: unknown key "x"`,
	}},

	{"unclosed quote", "handlers:\n  - module: \"a\n      b\"\n    name: 'x\n    url: y\n  - module: B\n", []string{"f:4: not YAML: found unexpected end of stream"}},
	{"unclosed quote in the last line", "handlers: 'x", []string{"f:1: not YAML: "}},
	{"tab", "handlers:\n  - module: A\n\tname: x\n    url: y\n", []string{"f:3: not YAML: found a tab character"}},
	{"two colons", "handlers:\n  - module: A\n    name: b: c\n    url: z\n", []string{"f:3: not YAML: mapping values are not allowed"}},
	{"two colons in the first line", "a: b: c\n", []string{"f:1: not YAML: mapping values are not allowed"}},
	{"bad indentation", "handlers:\n  - module: A\n    backoff: {base: 1s,\n      max: 2s}\n   name: b\n    url: y\n", []string{"f:5: not YAML: did not find expected '-' indicator"}},
	{"unclosed brace", "handlers:\n  - module: A\n    backoff: {base: 10s\n    url: z\n", []string{"f:3: not YAML: did not find expected ',' or '}'"}},
	{"reserved character", "handlers:\n  - module: A\n    name: @x\n", []string{"f:3: not YAML: found character that cannot start any token"}},
	{"unknown alias", "handlers:\n  - module: A\n    name: *x\n    url: y\n", []string{"f:3: not YAML: unknown anchor 'x' referenced"}},
	{"not UTF-8", "handlers:\n  - module: \xff\n", []string{"f:2: the file is not UTF-8 here"}},
	{"UTF-16", "\xff\xfeh\x00", []string{"f:1: the file is not UTF-8 here"}},
	{"null byte", "handlers:\n\n\x00", []string{"f:3: the control character U+0000 is here"}},
	{"too large", "#" + strings.Repeat("\n", MaxFileBytes), []string{"f:1: the file is 1048577 bytes long: the limit is 1048576"}},
}

func TestEveryMistakeIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	for _, c := range badFiles {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file, err := Parse("f", []byte(c.text))
			if err == nil {
				t.Fatalf("accepted as %+v", file)
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(c.want) {
				t.Fatalf("got\n%s\nwant %q", err, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got  %s\nwant %s…", got[i], want)
				}
			}
			checkProblems(t, c.text, err)
		})
	}
}

func TestBadURLsAreReportedWithTheirLineAndNotRepeated(t *testing.T) {
	t.Parallel()
	for _, text := range badURLs {
		if text == "" || strings.ContainsAny(text, "\n") {
			continue
		}
		_, err := Parse("f", []byte("handlers:\n  - module: M\n    name: n\n    modifier: _\n    url: '"+text+"'\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "f:5: url ") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestManyMistakesAreCounted: half a million lines are too many to read and to log.
func TestManyMistakesAreCounted(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ text, last string }{
		"no mappings":  {"handlers: [" + strings.Repeat("1,", 20_000) + "1]", "f: and 19901 mistakes more: correct these first"},
		"in lines":     {"handlers:\n" + strings.Repeat("- {}\n", 2_000), "mistakes more: correct these first"},
		"a long value": {"handlers: [{canvas: " + strings.Repeat("k", 1_000_000) + "}]", "8-4-4-4-12 hexadecimal digits"},
		"aliases":      {"handlers:\n- &a {canvas: " + strings.Repeat("k", 10_000) + "}\n" + strings.Repeat("- *a\n", 2_000), "mistakes more: correct these first"},
	} {
		_, err := Parse("f", []byte(c.text))
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		if text := err.Error(); len(text) > 110_000 || strings.Count(text, "\n") > 101 || !strings.HasPrefix(text, "f:") || !strings.Contains(text, c.last) {
			t.Errorf("%s: %d bytes, %.200q … %q", what, len(text), text, text[max(0, len(text)-200):])
		}
	}
}
