package httptarget

import (
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/internal/yamlfile"
)

// MaxFileBytes is the size of the largest handlers file that is read.
const MaxFileBytes = 1 << 20

// Keys of a handlers file.
const (
	keyHandlers     = "handlers"
	keyWebhooks     = "webhooks"
	keySources      = "subscriptions"
	keySubscription = "subscription"
	keyModule       = "module"
	keyName         = "name"
	keyModifier     = "modifier"
	keyCanvas       = "canvas"
	keyURL          = "url"
	keyTimeout      = "timeout"
	keyMaxRetries   = "max_retries"
	keyBackoff      = "backoff"
	keyOrderHold    = "order_hold"
	keyMaxSnoozes   = "max_snoozes"
	keyMinSnooze    = "min_snooze"
	keyBreaker      = "breaker_after"
	keyAuth         = "auth"
	keyHeaders      = "headers"
	keySignature    = "signature"
	keyAnswer       = "answer"
	keyBatch        = "batch"
	keySize         = "size"
	keyWait         = "wait"
	keyBase         = "base"
	keyMax          = "max"
)

// parser reads a handlers file and continues after a mistake, so that all mistakes
// are reported together.
type parser struct {
	problems   problems
	seen       map[eventqueue.CanvasHandler]int // its line
	plain      map[eventqueue.HandlerKey]int    // the line of a handler without an event
	plainNames map[moduleName]int               // the line of the first of these with this module and name
	onEvent    map[string][]*Entry              // the handlers of an event, without those of its parents
	incomplete bool                             // some handler is in none of these, because of its mistakes
}

// moduleName is what a pause holds.
type moduleName struct{ module, name string }

// contents are those of a file.
type contents struct {
	entries       []Entry
	dispatches    []dispatch
	webhooks      []WebhookEntry
	subscriptions []SubscriptionEntry
}

// parse reads the file; it is valid if and only if there are no problems.
func (p *parser) parse(data []byte) (has contents) {
	root := yamlfile.Document(yamlfile.Source{
		Data:     data,
		MaxBytes: MaxFileBytes,
		Empty:    fmt.Sprintf("list the handlers under %q", keyHandlers),
		Second:   "put all handlers into one list, without ---",
	}, p.problems.add)
	if root == nil {
		return has
	}
	fields, ok := p.mapping(root, "the file", keyHandlers, keyEvents, keyWebhooks, keySources)
	if !ok {
		return has
	}
	has.entries = p.handlers(root, fields)
	has.dispatches = p.dispatches(p.declared(fields))
	has.webhooks, has.subscriptions = p.webhooks(fields), p.subscriptions(fields)
	if len(has.entries)+len(has.webhooks)+len(has.subscriptions) == 0 && p.problems.none() {
		p.problems.add(root.Line, "there are no handlers: list at least one under %q", keyHandlers)
	}
	return has
}

func (p *parser) handlers(root *yaml.Node, fields map[string]*yaml.Node) []Entry {
	list := yamlfile.Resolve(fields[keyHandlers])
	switch {
	case list == nil && len(root.Content) > 0:
		// The mistake has been reported already.
		return nil
	case list == nil || list.ShortTag() == "!!null" || list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		p.problems.add(root.Line, "there are no handlers: list at least one under %q", keyHandlers)
		return nil
	case list.Kind != yaml.SequenceNode:
		p.problems.add(list.Line, "%q is %s: make it a list, one handler after each dash", keyHandlers, yamlfile.KindOf(list))
		return nil
	}
	p.seen = make(map[eventqueue.CanvasHandler]int, len(list.Content))
	p.plain, p.plainNames, p.onEvent = map[eventqueue.HandlerKey]int{}, map[moduleName]int{}, map[string][]*Entry{}
	entries := make([]Entry, len(list.Content))
	for i, item := range list.Content {
		e := &entries[i]
		switch {
		case !p.entry(item, e):
			p.incomplete = true
		case e.Event != "":
			p.onEvent[e.Event] = append(p.onEvent[e.Event], e)
		default:
			p.plain[e.Key] = e.Line
			if at := (moduleName{e.Key.Module, e.Key.Name}); p.plainNames[at] == 0 {
				p.plainNames[at] = e.Line
			}
			p.once(e, e.Key)
		}
	}
	return entries
}

// entry reads a handler, and reports whether it is known which events are for it.
func (p *parser) entry(item *yaml.Node, e *Entry) bool {
	e.Line = item.Line
	fields, ok := p.mapping(yamlfile.Resolve(item), "a handler",
		keyModule, keyName, keyModifier, keyEvent, keyCanvas, keyURL, keyTimeout, keyMaxRetries, keyBackoff, keyOrderHold, keyMaxSnoozes, keyMinSnooze, keyBreaker,
		keyAuth, keyHeaders, keySignature, keyAnswer, keyBatch)
	if !ok {
		return false
	}
	read := p.key
	if fields[keyEvent] != nil {
		read = p.event
	}
	whole := read(fields, e)
	whole = p.canvas(fields, &e.Canvas) && whole
	p.target(fields, &e.target)
	p.duration(fields, keyTimeout, &e.Timeout)
	p.count(fields, keyMaxRetries, "one run only", math.MaxInt32, &e.MaxRetries)
	p.backoff(fields, e)
	p.orderHold(fields, &e.OrderHold)
	p.count(fields, keyMaxSnoozes, "that a snooze is a failed attempt", eventqueue.MostSnoozes, &e.MaxSnoozes)
	p.minSnooze(fields, &e.MinSnooze)
	p.count(fields, keyBreaker, "no circuit breaker", math.MaxInt32, &e.BreakerAfter)
	p.auth(fields, e)
	p.headers(fields, e)
	p.signature(fields, e)
	p.answer(fields, e)
	p.batch(fields, e)
	return whole
}

// key reads the key of a handler without an event.
func (p *parser) key(fields map[string]*yaml.Node, e *Entry) bool {
	whole := p.require(e.Line, fields, keyModule, keyName, keyModifier, keyURL)
	for _, part := range []struct {
		key  string
		into *string
	}{
		{keyModule, &e.Key.Module}, {keyName, &e.Key.Name}, {keyModifier, &e.Key.Modifier},
	} {
		whole = p.name(fields, part.key, part.into) && whole
	}
	return whole
}

// once refuses a second entry for the same events: it would not be clear which of
// them runs.
func (p *parser) once(e *Entry, key eventqueue.HandlerKey) {
	at := eventqueue.CanvasHandler{Canvas: e.Canvas, Key: key}
	first, taken := p.seen[at]
	if !taken {
		p.seen[at] = e.Line
		return
	}
	where := ""
	if e.Canvas != (eventqueue.CanvasID{}) {
		where = " of canvas " + e.Canvas.String()
	}
	p.problems.add(e.Line, "handler %s%s has a target already, in line %d: remove one of the two%s", key, where, first, otherName(e))
}

func otherName(e *Entry) string {
	if e.Event == "" {
		return ""
	}
	return ", or give it another name: a handler of a parent gets the event as well"
}

// require reports the keys that are absent.
func (p *parser) require(line int, fields map[string]*yaml.Node, keys ...string) bool {
	all := true
	for _, key := range keys {
		if fields[key] == nil {
			p.problems.add(line, "%s is missing: add it to this handler", key)
			all = false
		}
	}
	return all
}

// mapping returns the values of a mapping by their keys and reports keys that
// are unknown or duplicate. what names the mapping in messages.
func (p *parser) mapping(n *yaml.Node, what string, known ...string) (map[string]*yaml.Node, bool) {
	return yamlfile.Mapping(n, what, p.problems.add, known...)
}

func (p *parser) subscriptions(fields map[string]*yaml.Node) []SubscriptionEntry {
	list := yamlfile.Resolve(fields[keySources])
	switch {
	case list == nil:
		return nil
	case list.Kind != yaml.SequenceNode:
		p.problems.add(list.Line, "%q is %s: make it a list, one subscription after each dash", keySources, yamlfile.KindOf(list))
		return nil
	}
	entries := make([]SubscriptionEntry, len(list.Content))
	seen := map[string]int{}
	for i, item := range list.Content {
		e := p.subscription(item)
		entries[i] = e
		if first, taken := seen[e.Subscription]; taken && e.Subscription != "" {
			p.problems.add(e.Line, "subscription %s is there already, in line %d: each would get a part of the messages; remove one of the two", e.Subscription, first)
		}
		seen[e.Subscription] = e.Line
	}
	return entries
}

func (p *parser) subscription(item *yaml.Node) SubscriptionEntry {
	e := SubscriptionEntry{Line: item.Line}
	fields, ok := p.mapping(yamlfile.Resolve(item), "a subscription", keySubscription, keyCanvas, keyModule, keyName, keyModifier)
	if !ok {
		return e
	}
	for _, key := range []string{keySubscription, keyCanvas, keyModule, keyName, keyModifier} {
		if fields[key] == nil {
			p.problems.add(e.Line, "%s is missing: add it to this subscription", key)
		}
	}
	if text, ok := p.text(fields, keySubscription); ok {
		e.Subscription = text.Value
	}
	p.canvas(fields, &e.Canvas)
	p.name(fields, keyModule, &e.Key.Module)
	p.name(fields, keyName, &e.Key.Name)
	p.name(fields, keyModifier, &e.Key.Modifier)
	return e
}
