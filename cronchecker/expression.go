package cronchecker

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// interval is a schedule with a name.
type interval struct {
	expression      string
	everySecondWeek bool
}

func intervals() map[string]interval {
	return map[string]interval{
		"every minute":    {expression: "* * * * *"},
		"every hour":      {expression: "0 * * * *"},
		"every 12 hours":  {expression: "0 0,12 * * *"},
		"every day":       {expression: "0 0 * * *"},
		"every week":      {expression: "0 0 * * 1"},
		"every fortnight": {expression: "0 0 * * 1", everySecondWeek: true},
	}
}

// field is one of the five fields of an expression.
type field struct {
	name string
	// size is the number of values, and so the largest step.
	size uint64
	// parser is the library's parser for this field alone, so that its errors can
	// name the field. bits takes the field's value out of the result.
	parser cron.Parser
	bits   func(*cron.SpecSchedule) uint64
}

func fields() [5]field {
	return [5]field{
		{"minute", 60, cron.NewParser(cron.Minute), func(s *cron.SpecSchedule) uint64 { return s.Minute }},
		{"hour", 24, cron.NewParser(cron.Hour), func(s *cron.SpecSchedule) uint64 { return s.Hour }},
		{"day of month", 31, cron.NewParser(cron.Dom), func(s *cron.SpecSchedule) uint64 { return s.Dom }},
		{"month", 12, cron.NewParser(cron.Month), func(s *cron.SpecSchedule) uint64 { return s.Month }},
		{"day of week", 7, cron.NewParser(cron.Dow), func(s *cron.SpecSchedule) uint64 { return s.Dow }},
	}
}

// maxExpressionBytes bounds the text of a schedule.
const maxExpressionBytes = 255

// element is one element of a comma-separated list. The library accepts other forms as
// well (empty elements, "?", "*-5", signs); none of them has a clear meaning.
var element = regexp.MustCompile(`(?i)^(?:\*|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:/([0-9]+))?$`)

// parseCalendar reads a schedule's text: an interval or an expression.
func parseCalendar(text string) (*calendar, error) {
	if len(text) > maxExpressionBytes {
		return nil, fmt.Errorf("is %d bytes long: the limit is %d", len(text), maxExpressionBytes)
	}
	meant, named := intervals()[strings.ToLower(text)]
	if !named {
		meant.expression = text
	}
	parts := strings.Fields(meant.expression)
	if len(parts) != 5 {
		return nil, fmt.Errorf("has %d fields: write every minute, hour, 12 hours, day, week or fortnight, "+
			"or five fields (minute, hour, day of month, month, day of week) as in 30 9 * * mon-fri", len(parts))
	}
	var sets [5]uint64
	for i, f := range fields() {
		set, err := f.parse(parts[i])
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", f.name, parts[i], err)
		}
		sets[i] = set
	}
	return &calendar{
		minute: sets[0], hour: sets[1], dayOfMonth: sets[2], month: sets[3], dayOfWeek: sets[4],
		eitherDay:       !starred(parts[2]) && !starred(parts[4]),
		everySecondWeek: meant.everySecondWeek,
		floating:        starred(parts[0]) || starred(parts[1]),
	}, nil
}

func starred(part string) bool { return strings.HasPrefix(part, "*") }

// parse returns the values in the text, one bit for each.
func (f field) parse(text string) (uint64, error) {
	var set uint64
	for part := range strings.SplitSeq(text, ",") {
		match := element.FindStringSubmatch(part)
		if match == nil {
			return 0, fmt.Errorf("%q is not *, a value, a range a-b, or one of these with a step /n", part)
		}
		step, err := f.step(match[3])
		if err != nil {
			return 0, err
		}
		values, err := f.values(part, match[1], match[2], step)
		if err != nil {
			return 0, err
		}
		set |= values
	}
	return set, nil
}

// step reads a step. It refuses one that is too large: */90 would not mean every 90
// minutes, but minute 0 only.
func (f field) step(text string) (uint64, error) {
	if text == "" {
		return 1, nil
	}
	step, err := strconv.ParseUint(text, 10, 64)
	if err != nil || step == 0 || step > f.size {
		return 0, fmt.Errorf("the step /%s is not from 1 to %d", text, f.size)
	}
	return step, nil
}

// values returns the bits of one element of a list. The library does not accept 7 as
// Sunday, nor ranges that end with Sunday. values splits such a range: the part up to
// Saturday, and Sunday as well if the steps reach it.
func (f field) values(part, first, last string, step uint64) (uint64, error) {
	const sunday = 1
	switch weekday := f.size == 7; {
	case weekday && isNumber(first, 7) && (last == "" || isNumber(last, 7)):
		return sunday, nil
	case weekday && endsWithSunday(first, last):
		upToSaturday, err := f.library(fmt.Sprintf("%s-6/%d", first, step))
		if err == nil && (7-uint64(bits.TrailingZeros64(upToSaturday)))%step == 0 {
			return upToSaturday | sunday, nil
		}
		return upToSaturday, err
	default:
		return f.library(part)
	}
}

func (f field) library(part string) (uint64, error) {
	parsed, err := f.parser.Parse(part)
	if err != nil {
		return 0, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		panic(fmt.Sprintf("cronchecker: the cron library made a %T of a field", parsed))
	}
	const star = 1 << 63 // set by the library; starred decides this for the package
	return f.bits(spec) &^ star, nil
}

func endsWithSunday(first, last string) bool {
	fromSunday := isNumber(first, 0) || strings.EqualFold(first, "sun")
	return isNumber(last, 7) || (strings.EqualFold(last, "sun") && !fromSunday)
}

func isNumber(text string, n int) bool {
	value, err := strconv.Atoi(text)
	return err == nil && value == n
}
