package pgstore_test

import (
	"encoding/json"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

// changed requires the result of a change of one event.
func (s *session) changed(what string, results []operate.Changed, err error, want operate.ChangeResult) {
	s.Helper()
	if err != nil || len(results) != 1 || results[0].Result != want {
		s.Errorf("%s was answered with %+v, %v, want %s", what, results, err, want)
	}
}

func (s *session) remove(id eventqueue.EventID, cancellation *operate.Cancellation, want operate.ChangeResult) (advanced []eventqueue.Event) {
	s.Helper()
	results, advanced, err := s.store.Remove(s.Context(), []eventqueue.EventID{id, id}, cancellation)
	s.changed("the removal of event "+id.String(), results, err, want)
	return advanced
}

func (s *session) edit(id eventqueue.EventID, edit operate.Edit, want operate.ChangeResult) {
	s.Helper()
	results, err := s.store.Edit(s.Context(), edit, []eventqueue.EventID{id})
	s.changed("the edit of event "+id.String(), results, err, want)
}

func (s *session) retry(id eventqueue.EventID, edit operate.Edit, want operate.ChangeResult) {
	s.Helper()
	if results, err := s.store.Retry(s.Context(), edit, []eventqueue.EventID{id}); err != nil || len(results) != 1 || results[0].Result != want {
		s.Errorf("the retry of event %s was answered with %+v, %v, want %s", id, results, err, want)
	}
}

// selects are the ids that a filter selects, by pages of two.
func (s *session) selects(logged bool, filter operate.EventFilter) (all []eventqueue.EventID) {
	s.Helper()
	last, err := s.store.LastQueued(s.Context())
	page := s.store.Select
	if logged {
		last, err = s.store.LastLogged(s.Context())
		page = s.store.SelectLogged
	}
	for after := eventqueue.EventID(0); err == nil; {
		var ids []eventqueue.EventID
		ids, after, err = page(s.Context(), filter, after, last, 2)
		if all = append(all, ids...); after == 0 {
			break
		}
	}
	if err != nil {
		s.Fatalf("select: %v", err)
	}
	return all
}

var changeCases = []testCase{
	{"a cancelled event does not run, and can be moved back with another value", func(s *session) {
		id := s.insert(1)[0]
		s.remove(id, &operate.Cancellation{Reason: "twice"}, operate.ChangeDone)
		s.remove(id, &operate.Cancellation{}, operate.ChangeCancelled)
		if found, err := s.store.Claim(s.Context(), []eventqueue.EventID{id}, handlers, 1); err != nil || len(found) != 0 {
			s.Errorf("a claim after the cancel found %+v, %v", found, err)
		}
		s.retry(id, operate.Edit{Value: json.RawMessage(`"new"`), Attributes: map[string]string{"by": "hand"}}, operate.RetryMoved)
		s.retry(id, operate.Edit{}, operate.RetryQueued)
		found, _ := s.mustClaim(id, 2)
		if string(found.Event.Value) != `"new"` || found.Event.Attributes["by"] != "hand" || found.Attempt != 1 {
			s.Errorf("the claim found %+v", found)
		}
	}},
	{"a deleted event leaves nothing", func(s *session) {
		id := s.insert(1)[0]
		s.remove(id, nil, operate.ChangeDone)
		s.remove(id, nil, operate.ChangeUnknown)
		s.retry(id, operate.Edit{}, operate.ChangeUnknown)
	}},
	{"what runs is neither removed nor edited nor requeued (I4)", func(s *session) {
		id := s.insert(1)[0]
		found, claim := s.mustClaim(id, 1)
		s.remove(id, nil, operate.ChangeRunning)
		s.edit(id, operate.Edit{Value: json.RawMessage(`"new"`)}, operate.ChangeRunning)
		if results, err := s.store.Requeue(s.Context(), []eventqueue.EventID{id}); err != nil || results[0].Result != operate.ChangeRunning || results[0].LockRemaining <= 0 {
			s.Errorf("the requeue was answered with %+v, %v", results, err)
		}
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); len(written.Done) != 1 || string(found.Event.Value) != `{"n": 1}` {
			s.Errorf("the end was answered with %+v", written)
		}
		s.edit(id, operate.Edit{Value: json.RawMessage(`"new"`)}, operate.ChangeUnknown)
	}},
	{"what was cancelled while it ran, and whose lock has expired, is not run again", func(s *session) {
		ids := s.insert(2)
		_, claim := s.mustClaim(ids[0], 1)
		_, other := s.mustClaim(ids[1], 2)
		s.remove(ids[0], &operate.Cancellation{Reason: "twice", Actor: "ada"}, operate.ChangeEnding)
		s.remove(ids[0], &operate.Cancellation{Reason: "once more"}, operate.ChangeEnding)
		written, err := s.store.Renew(s.Context(), []worker.Claim{claim, other})
		if err != nil || len(written.Done) != 2 || len(written.Lost) != 0 || !slices.Equal(written.Cancelled, ids[:1]) {
			s.Errorf("the renewal was answered with %+v, %v", written, err)
		}
		s.expireLocks()
		found, claim := s.mustClaim(ids[0], 3)
		if !found.Cancelled || found.Grouped || found.Facts.Waits || found.Event.Retries != 0 {
			s.Errorf("the next claim found %+v", found)
		}
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.Cancelled, LastError: "it ended"}); len(written.Done) != 1 {
			s.Errorf("the end was answered with %+v", written)
		}
		s.retry(ids[0], operate.Edit{}, operate.RetryMoved)
		if found, _ := s.mustClaim(ids[0], 4); found.Cancelled {
			s.Errorf("after a retry the claim found %+v", found)
		}
	}},
	{"what was cancelled while it ran does not wait for another run", func(s *session) {
		for _, end := range []worker.Completion{
			{Label: machine.RetryAllowed, Delay: time.Hour, LastError: "no luck"},
			{Label: machine.Snoozed, Delay: time.Hour},
			{Label: machine.OverLimit, Delay: time.Second},
			{Label: machine.Released},
		} {
			ids := s.insert(3, func(e *eventqueue.NewEvent) { e.OrderingKey = string(end.Label) })
			if turns, err := s.store.Advance(s.Context(), nil, ids); err != nil || len(turns) != 1 {
				s.Fatalf("the turn went to %+v, %v", turns, err)
			}
			other := s.insert(1)[0]
			_, cancelled := s.mustClaim(ids[0], 1)
			_, kept := s.mustClaim(other, 2)
			s.remove(ids[0], &operate.Cancellation{Reason: "twice", Actor: "ada"}, operate.ChangeEnding)
			ends := []worker.Completion{end, end}
			ends[0].Claim, ends[0].Grouped, ends[0].Passes = cancelled, true, true
			ends[1].Claim = kept
			written, err := s.store.Complete(s.Context(), nil, ends, true)
			if err != nil || !slices.Equal(written.Done, []eventqueue.EventID{other}) || len(written.Lost)+len(written.Advanced) != 0 || !slices.Equal(written.Cancelled, ids[:1]) {
				s.Errorf("%s: the end was answered with %+v, %v", end.Label, written, err)
			}
			written = s.complete(worker.Completion{Claim: cancelled, Label: machine.Cancelled, Grouped: true})
			if !slices.Equal(written.Done, ids[:1]) || len(written.Advanced) != 1 || written.Advanced[0].ID != ids[1] {
				s.Errorf("%s: its end as cancelled was answered with %+v", end.Label, written)
			}
			s.remove(ids[0], &operate.Cancellation{}, operate.ChangeCancelled)
			if written = s.complete(ends[0]); !slices.Equal(written.Lost, ids[:1]) || len(written.Cancelled) != 0 {
				s.Errorf("%s: after that the end was answered with %+v", end.Label, written)
			}
		}
	}},
	{"what was cancelled while it ran may complete", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		s.remove(id, &operate.Cancellation{}, operate.ChangeEnding)
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); len(written.Done) != 1 {
			s.Errorf("the end was answered with %+v", written)
		}
		s.remove(id, &operate.Cancellation{}, operate.ChangeUnknown)
	}},
	{"what was cancelled while it ran is removed like any other when its lock has expired", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		s.remove(id, &operate.Cancellation{}, operate.ChangeEnding)
		s.expireLocks()
		s.remove(id, &operate.Cancellation{}, operate.ChangeDone)
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.Cancelled}); len(written.Lost) != 1 {
			s.Errorf("the end was answered with %+v", written)
		}
	}},
	{"a requeue takes an expired lock from its holder (I5)", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		s.expireLocks()
		if results, err := s.store.Requeue(s.Context(), []eventqueue.EventID{id}); err != nil || results[0].Result != operate.RequeueDone || !results[0].TakenOver {
			s.Errorf("the requeue was answered with %+v, %v", results, err)
		}
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); len(written.Lost) != 1 {
			s.Errorf("the end of the holder was answered with %+v", written)
		}
		if found, _ := s.mustClaim(id, 2); found.Attempt != 2 || found.Company != worker.AnyCompany {
			s.Errorf("the next claim found %+v", found)
		}
	}},
	{"the tokens of an event go on after a cancel and a retry (I5)", func(s *session) {
		id := s.insert(1)[0]
		_, claim := s.mustClaim(id, 1)
		s.expireLocks()
		if _, err := s.store.Requeue(s.Context(), []eventqueue.EventID{id}); err != nil {
			s.Fatal(err)
		}
		s.remove(id, &operate.Cancellation{}, operate.ChangeDone)
		s.retry(id, operate.Edit{}, operate.RetryMoved)
		if found, _ := s.mustClaim(id, 1); found.Attempt != 2 {
			s.Errorf("the next claim found %+v", found)
		}
		if written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}); len(written.Lost) != 1 {
			s.Errorf("the end of the first claim was answered with %+v", written)
		}
	}},
	{"an edit of a content that the event no longer has changes nothing", func(s *session) {
		id := s.insert(1)[0]
		old := operate.Content{Value: json.RawMessage(`"old"`), Attributes: map[string]string{"a": "b", "by": "ada"}}
		s.edit(id, operate.Edit{Value: old.Value, Attributes: old.Attributes}, operate.ChangeDone)
		s.edit(id, operate.Edit{Value: json.RawMessage(`"no"`), Of: &operate.Content{Value: old.Value}}, operate.ChangeOutdated)
		s.edit(id, operate.Edit{Value: json.RawMessage(`"no"`), Of: &operate.Content{Value: json.RawMessage(`"older"`), Attributes: old.Attributes}}, operate.ChangeOutdated)
		s.edit(id, operate.Edit{Value: json.RawMessage(`"first"`), Of: &old}, operate.ChangeDone)
		s.edit(id, operate.Edit{Attributes: map[string]string{}, Of: &old}, operate.ChangeOutdated)
		first := operate.Content{Value: json.RawMessage(`"first"`), Attributes: old.Attributes}
		s.edit(id, operate.Edit{Attributes: map[string]string{}, Of: &first}, operate.ChangeDone)
		s.edit(id, operate.Edit{Value: json.RawMessage(`"second"`), Of: &operate.Content{Value: first.Value}}, operate.ChangeDone)
	}},
	{"a retry of a content that the event no longer has moves nothing", func(s *session) {
		id := s.insert(1)[0]
		s.edit(id, operate.Edit{Value: json.RawMessage(`"old"`), Attributes: map[string]string{"by": "ada"}}, operate.ChangeDone)
		s.remove(id, &operate.Cancellation{}, operate.ChangeDone)
		old := operate.Content{Value: json.RawMessage(`"old"`), Attributes: map[string]string{"by": "ada"}}
		s.retry(id, operate.Edit{Value: json.RawMessage(`"no"`), Of: &operate.Content{Value: old.Value}}, operate.ChangeOutdated)
		s.retry(id, operate.Edit{Of: &operate.Content{Value: json.RawMessage(`"older"`), Attributes: old.Attributes}}, operate.ChangeOutdated)
		s.retry(id, operate.Edit{Value: json.RawMessage(`"new"`), Of: &old}, operate.RetryMoved)
		s.remove(id, &operate.Cancellation{}, operate.ChangeDone)
		s.retry(id, operate.Edit{Of: &old}, operate.ChangeOutdated)
		s.retry(id, operate.Edit{Of: &operate.Content{Value: json.RawMessage(`"new"`), Attributes: old.Attributes}}, operate.RetryMoved)
	}},
	{"an edit changes what it names", func(s *session) {
		id := s.insert(1, func(e *eventqueue.NewEvent) { e.Attributes = map[string]string{"source": "import"} })[0]
		hour, now := time.Hour, time.Duration(0)
		s.edit(id, operate.Edit{Delay: &hour}, operate.ChangeDone)
		if facts := s.claim(id, 1).Facts; facts.Claimed || facts.Delay <= 59*time.Minute {
			s.Errorf("the claim found %+v", facts)
		}
		s.edit(id, operate.Edit{Value: json.RawMessage(`{"b": 1,  "a":2}`)}, operate.ChangeDone)
		s.edit(id, operate.Edit{Delay: &now}, operate.ChangeDone)
		if found, _ := s.mustClaim(id, 2); string(found.Event.Value) != `{"b": 1,  "a":2}` || found.Event.Attributes["source"] != "import" {
			s.Errorf("the claim found %+v", found)
		}
	}},
	{"a removal advances the group behind it (I13)", func(s *session) {
		ids := s.insert(2, func(e *eventqueue.NewEvent) { e.OrderingKey = "order" })
		if _, err := s.store.Advance(s.Context(), nil, ids); err != nil {
			s.Fatal(err)
		}
		if advanced := s.remove(ids[0], &operate.Cancellation{}, operate.ChangeDone); len(advanced) != 1 || advanced[0].ID != ids[1] {
			s.Errorf("the events %+v may run, want event %s", advanced, ids[1])
		}
	}},
	{"a filter selects by state and by what the event is", func(s *session) {
		ids := s.insert(5, func(e *eventqueue.NewEvent) { e.Attributes = map[string]string{"source": "import"} })
		hour := time.Hour
		s.edit(ids[1], operate.Edit{Delay: &hour}, operate.ChangeDone)
		s.mustClaim(ids[2], 1)
		s.remove(ids[3], &operate.Cancellation{}, operate.ChangeDone)
		s.failOnce(ids[4], machine.FailedForGood, 2)
		other := eventqueue.CanvasID{0xee}
		for _, c := range []struct {
			logged bool
			filter operate.EventFilter
			want   []eventqueue.EventID
		}{
			{false, operate.EventFilter{Module: key.Module}, ids[:3]},
			{false, operate.EventFilter{Canvas: &other}, nil},
			{false, operate.EventFilter{Attributes: map[string]string{"source": "shop"}}, nil},
			{false, operate.EventFilter{OlderThan: time.Hour}, nil},
			{false, operate.EventFilter{NewerThan: time.Hour, State: operate.StateWaiting}, ids[:1]},
			{false, operate.EventFilter{State: operate.StateDelayed}, ids[1:2]},
			{false, operate.EventFilter{State: operate.StateRunning}, ids[2:3]},
			{true, operate.EventFilter{Module: key.Module}, ids[4:]},
			{true, operate.EventFilter{Error: "no luck"}, ids[4:]},
			{true, operate.EventFilter{Error: "luck!"}, nil},
			{true, operate.EventFilter{Attributes: map[string]string{"source": "import"}, State: operate.StateCancelled}, ids[3:4]},
		} {
			if got := s.selects(c.logged, c.filter); !slices.Equal(got, c.want) {
				s.Errorf("%+v selects %v, want %v", c.filter, got, c.want)
			}
		}
	}},
	{"only what has failed or was cancelled is deleted from event_log", func(s *session) {
		ids := s.insert(3)
		s.failOnce(ids[0], machine.FailedForGood, 1)
		s.remove(ids[1], &operate.Cancellation{}, operate.ChangeDone)
		_, claim := s.mustClaim(ids[2], 2)
		if _, err := s.store.Complete(s.Context(), nil, []worker.Completion{{Claim: claim, Label: machine.ExecutesToCompletion}}, true); err != nil {
			s.Fatal(err)
		}
		deleted, err := s.store.DeleteLogged(s.Context(), append(ids, 1<<40))
		if err != nil || !slices.Equal(operate.DoneIDs(deleted), ids[:2]) {
			s.Errorf("events %v were deleted, %v; want %v", deleted, err, ids[:2])
		}
		s.retry(ids[0], operate.Edit{}, operate.ChangeUnknown)
		s.retry(ids[2], operate.Edit{}, operate.ChangeCompleted)
	}},
}
