package httptarget

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

// Kinds of outcome, as the worker tells them apart: by the types that Permanent
// and Snooze make. Those are not exported; their texts and wrapping are.
const (
	completed = "completed"
	permanent = "permanent"
	retry     = "retry"
)

// outcomeOf names the kind of an error; a snooze is named by its text.
func outcomeOf(err error) string {
	if err == nil {
		return completed
	}
	for _, d := range []time.Duration{time.Second, 2 * time.Second, 7 * time.Second, 30 * time.Second, time.Minute, MaxSnooze} {
		if snooze := eventqueue.Snooze(d); strings.Contains(err.Error(), snooze.Error()+",") {
			return snooze.Error()
		}
	}
	if isPermanent(err) {
		return permanent
	}
	return retry
}

// isPermanent walks the chain for the type that Permanent returns.
func isPermanent(err error) bool {
	want := typeName(eventqueue.Permanent(errors.New("x")))
	for ; err != nil; err = errors.Unwrap(err) {
		if typeName(err) == want {
			return true
		}
	}
	return false
}

func TestVerdictByStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		200: completed, 201: completed, 202: completed, 204: completed, 226: completed, 299: completed,
		300: permanent, 301: permanent, 302: permanent, 304: permanent, 307: permanent, 308: permanent, 399: permanent,
		400: permanent, 401: permanent, 403: permanent, 404: permanent, 405: permanent, 409: permanent, 410: permanent,
		413: permanent, 415: permanent, 418: permanent, 422: permanent, 425: permanent, 451: permanent, 499: permanent,
		408: retry, 429: retry,
		500: retry, 501: retry, 502: retry, 503: retry, 504: retry, 507: retry, 599: retry,
		101: retry, 199: retry, 600: retry, 999: retry,
	} {
		if got := outcomeOf(verdict(answer{status: status, header: http.Header{}})); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

// What a target answers to everything while it is away counts for the circuit breaker, with the time that it asks for.
func TestVerdictSaysWhichAnswersAreOfATargetThatIsAway(t *testing.T) {
	t.Parallel()
	header := http.Header{"Retry-After": {"30"}}
	for status, want := range map[int]bool{
		200: false, 204: false, 301: false, 400: false, 408: false, 409: false, 410: false, 422: false,
		401: true, 403: true, 404: true, 429: true, 500: true, 502: true, 503: true, 504: true, 599: true,
	} {
		var away interface{ Unavailable() time.Duration }
		if got := errors.As(verdict(answer{status: status, header: header}), &away); got != want {
			t.Errorf("%d: away: %t, want %t", status, got, want)
		} else if got && away.Unavailable() != 30*time.Second {
			t.Errorf("%d: the target is left alone for %s", status, away.Unavailable())
		}
	}
}

func TestVerdictHonoursRetryAfterOfTheTwoStatusesOnly(t *testing.T) {
	t.Parallel()
	header := http.Header{"Retry-After": {"30"}}
	for status, want := range map[int]string{
		429: "snoozed for 30s", 503: "snoozed for 30s",
		200: completed, 301: permanent, 404: permanent, 408: retry, 500: retry, 502: retry,
	} {
		if got := outcomeOf(verdict(answer{status: status, header: header})); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

func TestRetryAfterIsParsed(t *testing.T) {
	t.Parallel()
	received := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return received.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		name, retryAfter, date string
		want                   time.Duration // 0: none
	}{
		{name: "absent"},
		{name: "seconds", retryAfter: "7", want: 7 * time.Second},
		{name: "zero", retryAfter: "0"},
		{name: "zero, at length", retryAfter: "000"},
		{name: "a day", retryAfter: "86400", want: MaxSnooze},
		{name: "more than a day", retryAfter: "86401", want: MaxSnooze},
		{name: "more than a duration", retryAfter: "9223372037", want: MaxSnooze},
		{name: "more than a number", retryAfter: strings.Repeat("9", 40), want: MaxSnooze},
		{name: "negative", retryAfter: "-7"},
		{name: "signed", retryAfter: "+7"},
		{name: "fraction", retryAfter: "1.5"},
		{name: "hexadecimal", retryAfter: "0x10"},
		{name: "with a unit", retryAfter: "7s"},
		{name: "words", retryAfter: "later"},
		{name: "date by the Date of the answer", retryAfter: at(time.Hour), date: at(59 * time.Minute), want: time.Minute},
		{name: "date without a Date", retryAfter: at(time.Minute), want: time.Minute},
		{name: "date with a malformed Date", retryAfter: at(time.Minute), date: "yesterday", want: time.Minute},
		{name: "date that is now", retryAfter: at(0), date: at(0)},
		{name: "date in the past", retryAfter: at(-time.Hour), date: at(0)},
		{name: "date far ahead", retryAfter: at(48 * time.Hour), date: at(0), want: MaxSnooze},
		{name: "date beyond all durations", retryAfter: "Fri, 31 Dec 9999 23:59:59 GMT", want: MaxSnooze},
		{name: "date in the old format", retryAfter: received.Add(time.Minute).Format(time.ANSIC), want: time.Minute},
		{name: "no such day", retryAfter: "Fri, 31 Feb 2024 12:00:00 GMT"},
	} {
		header := http.Header{}
		if c.retryAfter != "" {
			header.Set("Retry-After", c.retryAfter)
		}
		if c.date != "" {
			header.Set("Date", c.date)
		}
		got, ok := retryAfter(header, received)
		if got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: %s, %t; want %s", c.name, got, ok, c.want)
		}
	}
}

func TestVerdictReportsWhereARedirectLeadsWithoutSecrets(t *testing.T) {
	t.Parallel()
	err := verdict(answer{status: 308, location: newLocation(http.Header{"Location": {"https://me:secret@example.com/new?token=secret"}})})
	text := err.Error()
	if !strings.Contains(text, "308 Permanent Redirect") || !strings.Contains(text, "https://example.com/new?…") {
		t.Errorf("the error does not help: %s", text)
	}
	if strings.Contains(text, "secret") {
		t.Errorf("the error holds a secret: %s", text)
	}
}

func TestPrintableRemovesControlCharacters(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"two\r\nlines\x00\x1b[0m": "two lines [0m",
		"ü and 😀":                 "ü and 😀",
		"bad \xff byte":           "bad \uFFFD byte",
		"\u202eright to left":     "right to left",
	} {
		if got := printable([]byte(in)); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWholeRunesCutsNoRune(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                 "",
		"abc":              "abc",
		"ab\u00fc":         "ab\u00fc",
		"ab\xc3":           "ab",
		"ab\xf0\x9f\x98":   "ab",
		"ab😀":              "ab😀",
		"ab\xff":           "ab\xff",
		"\x80\x80\x80\x80": "\x80\x80\x80\x80",
	} {
		if got := string(wholeRunes([]byte(in))); got != want {
			t.Errorf("wholeRunes(%q) = %q, want %q", in, got, want)
		}
	}
}
