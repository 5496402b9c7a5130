package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/internal/keymode"
	"eventsv2/test/oracle"
)

// Insert implements eventqueue.EmitStore.
func (s *port) Insert(ctx context.Context, in eventqueue.DB, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return s.InsertEnding(ctx, in, 0, events, mode)
}

// PassKey implements eventqueue.EmitStore.
func (s *port) PassKey(ctx context.Context, in eventqueue.DB, ending eventqueue.EventID, heirs []eventqueue.EventID) error {
	return s.do(ctx, "PassKey", ending.String(), func() (string, error) {
		return fmt.Sprint(heirs), s.db.PassKey(ctx, raw(in), ending, heirs)
	})
}

// InsertEnding implements eventqueue.EmitStore.
func (s *port) InsertEnding(ctx context.Context, in eventqueue.DB, ending eventqueue.EventID, events []eventqueue.NewEvent, mode eventqueue.NotifyMode) (inserted []eventqueue.Inserted, err error) {
	key := fmt.Sprintf("%d×%s", len(events), events[0].Handler())
	c := call{to: database, op: "Insert", key: key, ready: s.keysFree(events)}
	err = s.p.do(ctx, c, func() (string, error) {
		inserted, err = s.db.InsertEnding(ctx, raw(in), ending, s.p.fromClockEach(events), mode)
		if err != nil {
			return "", err
		}
		now := now()
		s.p.w.record(in, func() {
			for i, row := range inserted {
				switch {
				case row.Repeat && events[i].UniqueMode == keymode.Replace:
					again := slices.ContainsFunc(inserted[i+1:], func(later eventqueue.Inserted) bool { return later.ID == row.ID })
					s.p.w.replaced(s.p, row.ID, &events[i], now, !again)
					continue
				case row.Repeat:
					s.p.w.repeated(s.p, row.ID, &events[i], now)
					continue
				}
				s.p.w.emitted(s.p, row.ID, &events[i], now)
				s.p.w.mayRefuse(row.ID)
			}
		})
		s.p.w.emittedIn(in, events, inserted)
		return fmt.Sprint(idsOf(inserted, func(r eventqueue.Inserted) eventqueue.EventID { return r.ID })), nil
	})
	if err != nil && in == nil {
		s.p.w.unanswered(s.p, inserted)
	}
	return onlyIf(inserted, err), err
}

// InsertSQL is not simulated.
func (s *port) InsertSQL(context.Context, *sql.Tx, []eventqueue.NewEvent, eventqueue.NotifyMode) ([]eventqueue.Inserted, error) {
	return nil, errors.ErrUnsupported
}

// InTx implements eventqueue.EmitStore.
func (s *port) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.end(ctx, tx)
	if err := f(ctx, tx); err != nil {
		return err
	}
	return s.commit(ctx, tx)
}

// Unclaimed implements eventqueue.EmitStore.
func (s *port) Unclaimed(ctx context.Context, asked []eventqueue.Unanswered) (found []eventqueue.Notification, err error) {
	err = s.do(ctx, "Unclaimed", fmt.Sprint(asked), func() (string, error) {
		found, err = s.db.Unclaimed(ctx, asked)
		byEvent(found)
		for _, n := range found {
			s.p.w.add(oracle.Record{Kind: oracle.FoundAgain, Actor: s.p.name, Event: n.Event})
		}
		return eventsOf(found), err
	})
	return onlyIf(found, err), err
}
