package httptarget

import (
	"cmp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/batch"
	"eventsv2/internal/yamlfile"
)

// maxDuration bounds durations so that arithmetic on them cannot overflow; it is the
// longest delay of an event by default.
const maxDuration = 366 * 24 * time.Hour

// text reads a field that has to be a text. It reports a mistake; for an absent field
// it only returns false. The value itself is never printed: it may be a URL.
func (p *parser) text(fields map[string]*yaml.Node, key string) (n *yaml.Node, ok bool) {
	n = yamlfile.Resolve(fields[key])
	switch {
	case n == nil:
		return nil, false
	case n.Kind != yaml.ScalarNode:
		p.problems.add(n.Line, "%s is %s: give it one value", key, yamlfile.KindOf(n))
	case n.Value == "" || n.ShortTag() == "!!null":
		p.problems.add(n.Line, "%s is empty: give it a value", key)
	case n.ShortTag() != "!!str":
		p.problems.add(n.Line, "%s is %s: put it into quotes if it is meant as text", key, yamlfile.KindOf(n))
	default:
		return n, true
	}
	return n, false
}

// name reads a part of a handler key and checks it by the rules of emit.
func (p *parser) name(fields map[string]*yaml.Node, key string, into *string) bool {
	n, ok := p.text(fields, key)
	if !ok {
		return false
	}
	// The rules are the same for all three parts, so any part can be checked as the
	// module.
	if _, err := eventqueue.CheckHandler(eventqueue.HandlerKey{Module: n.Value, Name: "_", Modifier: "_"}); err != nil {
		p.problems.add(n.Line, "%s %s", key, err)
		return false
	}
	*into = n.Value
	return true
}

func (p *parser) canvas(fields map[string]*yaml.Node, into *eventqueue.CanvasID) bool {
	if fields[keyCanvas] == nil {
		return true
	}
	n, ok := p.text(fields, keyCanvas)
	if !ok {
		return false
	}
	canvas, err := eventqueue.ParseCanvasID(n.Value)
	switch {
	case err != nil:
		p.problems.add(n.Line, "%s %q is not a uuid: write it as 8-4-4-4-12 hexadecimal digits", keyCanvas, n.Value)
	case canvas == (eventqueue.CanvasID{}):
		p.problems.add(n.Line, "%s is all zeros, which no canvas is: leave it out to mean every canvas", keyCanvas)
	default:
		*into = canvas
		return true
	}
	return false
}

func (p *parser) target(fields map[string]*yaml.Node, into *address) {
	n, ok := p.text(fields, keyURL)
	if !ok {
		return
	}
	target, err := parseAddress(n.Value)
	if err != nil {
		p.problems.add(n.Line, "%s %s", keyURL, err)
		return
	}
	*into = target
}

// duration reads a duration of more than 0.
func (p *parser) duration(fields map[string]*yaml.Node, key string, into *time.Duration) bool {
	d, n, ok := p.span(fields, key)
	switch {
	case !ok:
		return false
	case d <= 0:
		p.problems.add(n.Line, "%s is %s: it must be more than 0", key, d)
		return false
	default:
		*into = d
		return true
	}
}

func (p *parser) orderHold(fields map[string]*yaml.Node, into **time.Duration) {
	d, n, ok := p.span(fields, keyOrderHold)
	switch {
	case !ok:
	case d < 0:
		p.problems.add(n.Line, "%s is %s: it must not be negative; 0s means that an event that is put off holds back no other", keyOrderHold, d)
	default:
		*into = &d
	}
}

// span reads a duration of any sign.
func (p *parser) span(fields map[string]*yaml.Node, key string) (d time.Duration, n *yaml.Node, ok bool) {
	if n := yamlfile.Resolve(fields[key]); n != nil && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		p.problems.add(n.Line, "%s is a number without a unit: write it like 30s, 10m or 1h30m", key)
		return 0, nil, false
	}
	if n, ok = p.text(fields, key); !ok {
		return 0, nil, false
	}
	d, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		p.problems.add(n.Line, "%s %q is not a duration: write it like 30s, 10m or 1h30m", key, n.Value)
	case d > maxDuration:
		p.problems.add(n.Line, "%s is %s: the limit is %s", key, d, maxDuration)
	default:
		return d, n, true
	}
	return 0, nil, false
}

// count reads a number of times, up to most; zero is the meaning of 0, for messages.
func (p *parser) count(fields map[string]*yaml.Node, key, zero string, most int64, into **int) {
	n := yamlfile.Resolve(fields[key])
	if n == nil {
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		p.problems.add(n.Line, "%s is %s: write a whole number; 0 means %s", key, yamlfile.KindOf(n), zero)
		return
	}
	count, err := strconv.ParseInt(n.Value, 10, 64)
	switch {
	case err != nil || count > most:
		p.problems.add(n.Line, "%s %s cannot be used: write a whole number from 0 to %d in decimal digits", key, n.Value, most)
	case count < 0:
		p.problems.add(n.Line, "%s is %d: it must not be negative; 0 means %s", key, count, zero)
	default:
		number := int(count)
		*into = &number
	}
}

func (p *parser) minSnooze(fields map[string]*yaml.Node, into *time.Duration) {
	if fields[keyMinSnooze] == nil || !p.duration(fields, keyMinSnooze, into) {
		return
	}
	if err := (eventqueue.Policy{MinSnooze: *into}).Validate(); err != nil {
		p.problems.add(yamlfile.Resolve(fields[keyMinSnooze]).Line, "%s is %s: it must be at most 1m", keyMinSnooze, *into)
	}
}

// backoff requires both of its halves: a reader of the file would have to guess the
// default of the other one.
func (p *parser) backoff(fields map[string]*yaml.Node, e *Entry) {
	n := yamlfile.Resolve(fields[keyBackoff])
	if n == nil {
		return
	}
	parts, ok := p.mapping(n, keyBackoff, keyBase, keyMax)
	if !ok {
		return
	}
	for _, key := range []string{keyBase, keyMax} {
		if parts[key] == nil {
			p.problems.add(n.Line, "%s has no %s: write it like {base: 10s, max: 10m}", keyBackoff, key)
		}
	}
	hasBase := p.duration(parts, keyBase, &e.BackoffBase)
	hasMax := p.duration(parts, keyMax, &e.BackoffMax)
	if hasBase && hasMax && e.BackoffBase > e.BackoffMax {
		p.problems.add(n.Line, "%s has a base of %s, which is more than its max of %s: swap them or raise max",
			keyBackoff, e.BackoffBase, e.BackoffMax)
	}
}

// answer reads what the body of a 2xx answer is.
func (p *parser) answer(fields map[string]*yaml.Node, e *Entry) {
	n, ok := p.text(fields, keyAnswer)
	if !ok {
		return
	}
	if e.Answers = Answers(n.Value); e.Answers != EmitAnswers && e.Answers != RetainAnswers {
		p.problems.add(n.Line, "%s is %q: write %s, which emits the events in the answers of the target, or %s, which keeps an answer as the result of its event, or leave it out",
			keyAnswer, n.Value, EmitAnswers, RetainAnswers)
	}
}

// batchWait is the wait of a batch that sets none.
const batchWait = 100 * time.Millisecond

// batch reads how many events a request may have.
func (p *parser) batch(fields map[string]*yaml.Node, e *Entry) {
	n := yamlfile.Resolve(fields[keyBatch])
	if n == nil {
		return
	}
	parts, ok := p.mapping(n, keyBatch, keySize, keyWait)
	if !ok {
		return
	}
	const sizeOf, waitOf = keyBatch + "." + keySize, keyBatch + "." + keyWait
	named := map[string]*yaml.Node{sizeOf: parts[keySize], waitOf: parts[keyWait]}
	var size *int
	p.count(named, sizeOf, "nothing", batch.MaxSize, &size)
	switch {
	case named[sizeOf] == nil:
		p.problems.add(n.Line, "%s has no %s: write it like {size: 100, wait: 200ms}", keyBatch, keySize)
	case size != nil && *size < 2:
		p.problems.add(n.Line, "%s is %d: it is from 2 to %d; without %s each event is a request", sizeOf, *size, batch.MaxSize, keyBatch)
	case size != nil:
		e.BatchSize = *size
	}
	most := cmp.Or(e.Timeout, time.Minute) / 2
	if e.BatchWait = min(batchWait, most); named[waitOf] != nil && p.duration(named, waitOf, &e.BatchWait) && e.BatchWait > min(most, batch.MaxWait) {
		p.problems.add(n.Line, "%s is %s: it is at most %s, and half of the timeout of a run, which it is a part of", waitOf, e.BatchWait, min(most, batch.MaxWait))
	}
	if e.Answers != IgnoreAnswers {
		p.problems.add(n.Line, "%s and %s are both given, and an answer to several events is that of none: remove one of the two", keyBatch, keyAnswer)
	}
}
