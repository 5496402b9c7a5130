package cronchecker

import (
	"math/bits"
	"time"
)

// calendar is the set of wall-clock minutes that a schedule names, without regard to
// any time zone. Wall-clock minutes are counted from 1970-01-01 00:00 as a wall clock
// shows it. Every day has 1,440 of them, so daylight-saving time plays no role here.
type calendar struct {
	// One bit per value of the field.
	minute, hour, dayOfMonth, month, dayOfWeek uint64

	// eitherDay means that both fields for days are restricted: a day matches if
	// one of them does.
	eitherDay bool

	// everySecondWeek omits every other week, counted from firstMonday.
	everySecondWeek bool

	// floating means that the minute or the hour begins with a star. Such a schedule
	// means "while the clock shows this" and not "at this time of the day"; see "When
	// clocks change" in the package documentation.
	floating bool
}

const (
	minutesPerDay = 24 * 60
	secondsPerDay = minutesPerDay * 60

	// firstMonday is 1970-01-05 in days since 1970-01-01.
	firstMonday = 4

	// maxSearchDays is the length of the Gregorian calendar's cycle, after which
	// weekdays and leap years repeat: a set without a minute in it is empty.
	maxSearchDays = 146097
)

// next returns the first minute of the set in [from, end).
func (c *calendar) next(from, end int64) (int64, bool) {
	day, minute := divide(from, minutesPerDay)
	for tried := 0; day*minutesPerDay < end && tried <= maxSearchDays; tried++ {
		date := dateOf(day)
		if !has(c.month, int(date.Month())) {
			day, minute = dayNumber(date.Year(), date.Month()+1, 1), 0
			continue
		}
		if c.hasDay(day, date) {
			if m, ok := c.nextInDay(int(minute)); ok {
				found := day*minutesPerDay + int64(m)
				return found, found < end
			}
		}
		day, minute = day+1, 0
	}
	return 0, false
}

// previous returns the last minute of the set in [start, from].
func (c *calendar) previous(from, start int64) (int64, bool) {
	day, minute := divide(from, minutesPerDay)
	for tried := 0; (day+1)*minutesPerDay > start && tried <= maxSearchDays; tried++ {
		date := dateOf(day)
		if !has(c.month, int(date.Month())) {
			day, minute = dayNumber(date.Year(), date.Month(), 0), minutesPerDay-1
			continue
		}
		if c.hasDay(day, date) {
			if m, ok := c.previousInDay(int(minute)); ok {
				found := day*minutesPerDay + int64(m)
				return found, found >= start
			}
		}
		day, minute = day-1, minutesPerDay-1
	}
	return 0, false
}

// everMatches reports whether the set has any minute.
func (c *calendar) everMatches() bool {
	_, ok := c.next(0, (maxSearchDays+1)*minutesPerDay)
	return ok
}

func (c *calendar) hasDay(day int64, date time.Time) bool {
	if c.everySecondWeek {
		if _, inCycle := divide(day-firstMonday, 14); inCycle >= 7 {
			return false
		}
	}
	byDate := has(c.dayOfMonth, date.Day())
	byWeekday := has(c.dayOfWeek, int(date.Weekday()))
	if c.eitherDay {
		return byDate || byWeekday
	}
	return byDate && byWeekday
}

// nextInDay returns the first minute of the day, not before from, in the set.
func (c *calendar) nextInDay(from int) (int, bool) {
	for hour, first := from/60, from%60; hour < 24; hour, first = hour+1, 0 {
		left := c.minute >> first << first
		if has(c.hour, hour) && left != 0 {
			return hour*60 + bits.TrailingZeros64(left), true
		}
	}
	return 0, false
}

// previousInDay returns the last minute of the day, not after from, in the set.
func (c *calendar) previousInDay(from int) (int, bool) {
	for hour, last := from/60, from%60; hour >= 0; hour, last = hour-1, 59 {
		left := c.minute << (63 - last) >> (63 - last)
		if has(c.hour, hour) && left != 0 {
			return hour*60 + bits.Len64(left) - 1, true
		}
	}
	return 0, false
}

func has(set uint64, value int) bool { return set&(1<<value) != 0 }

// dateOf is the date of a day, counted from 1970-01-01.
func dateOf(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }

func dayNumber(year int, month time.Month, day int) int64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
}

// divide divides and rounds down, below zero as well.
func divide(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
