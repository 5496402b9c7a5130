package memstore

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
)

// MinuteRows and HourRows return copies of the rows of event_minutes and event_hours, by time,
// canvas, module and name.
func (s *Store) MinuteRows() []MinuteRow { return s.allRows(s.db.counts.minutes) }

// HourRows is MinuteRows for event_hours.
func (s *Store) HourRows() []MinuteRow { return s.allRows(s.db.counts.hours) }

func (s *Store) allRows(table minuteTable) []MinuteRow {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	return table.rows(func(time.Time) bool { return true })
}

// NewCounter implements eventqueue.CountingStore.
func (s *Store) NewCounter(jitter func(time.Duration) time.Duration, log *zap.Logger) eventqueue.Counter {
	return minutes.New(s, jitter, log)
}

// AddMinutes implements minutes.Store.
func (s *Store) AddMinutes(ctx context.Context, counts []minutes.Counts) (now time.Time, err error) {
	err = s.atOnce(ctx, OpAddMinutes, func() {
		now = s.db.now()
		minute, present := now.Truncate(time.Minute), 0
		for key, row := range s.db.counts.minutes {
			if key.begins.Equal(minute) && row.Events() > 0 {
				present++
			}
		}
		given := make([]placedCounts, len(counts))
		for i := range counts {
			row := MinuteRow{Begins: minute, Counts: counts[i]}
			_, there := s.db.counts.minutes[keyOfMinute(&row)]
			given[i] = placedCounts{place: i, there: there, MinuteRow: row}
		}
		room := minuteRoom{scopes: max(minuteScopes-present, 0), handlers: min(minuteScopes, max(2*minuteScopes-present, 0))}
		for key, row := range mergeMinutes(given, room) {
			if old := s.db.counts.minutes[key]; old != nil {
				old.Merge(&row.Counts)
				continue
			}
			row.Pending, row.OldestDue = nil, nil
			s.db.counts.minutes[key] = row
		}
	})
	if err != nil {
		return time.Time{}, err
	}
	return now, nil
}

// Minutes is that of an inspect.Reader.
func (s *Store) Minutes(ctx context.Context, filter inspect.Filter, since time.Duration, resolution inspect.Resolution) (minutes []inspect.Minute, err error) {
	err = s.atOnce(ctx, OpMinutes, func() {
		now := s.db.now()
		first := now.Add(-since.Truncate(time.Microsecond))
		if resolution == inspect.PerHour {
			minutes = s.db.counts.hoursSince(first.Truncate(time.Hour))
		} else {
			from := first.Truncate(time.Minute)
			minutes = s.db.counts.minutes.rows(func(begins time.Time) bool { return !begins.Before(from) })
		}
		minutes = slices.DeleteFunc(minutes, func(m inspect.Minute) bool {
			return filter.Canvas != nil && m.Canvas != *filter.Canvas || filter.Module != "" && m.Module != filter.Module || filter.Name != "" && m.Name != filter.Name
		})
		for i := range minutes {
			minutes[i].AsOf = now
		}
	})
	if err != nil {
		return nil, err
	}
	return minutes, nil
}
