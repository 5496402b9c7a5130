package cleanup

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

func (r *rig) put(key Key, ttl time.Duration, data string) ID {
	r.Helper()
	id, err := r.store.Put(r.ctx, key, TTL(ttl), []byte(data))
	if err != nil {
		r.Fatal(err)
	}
	return id
}

func (r *rig) expired(key Key) (data []string) {
	r.Helper()
	list, err := r.store.ListExpired(r.ctx, key)
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range list {
		data = append(data, string(c.Data))
	}
	return data
}

// TestStoreListsExpiresAndDeletesByKey: what is put is listed for its key only (I16), expires by its ttl, and
// is deleted once and for all.
func TestStoreListsExpiresAndDeletesByKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	others := []Key{key, key, key, key}
	others[0].Canvas[0]++
	others[1].Component = "mail"
	others[2].Topic = "K"
	others[3].Inputs = keyOf(t, Config{Key: "k", Inputs: []string{"a"}}, map[string]any{"a": 1}).Inputs
	for _, other := range others {
		r.put(other, 0, "other")
	}
	first, second := r.put(key, 0, "\x00 any \xff bytes"), r.put(key, 0, "")
	r.put(key, 84*time.Hour, "later")
	if got := r.expired(key); !slices.Equal(got, []string{"\x00 any \xff bytes", ""}) {
		t.Errorf("expired are %q", got)
	}
	list := r.all(key)
	if len(list) != 3 || list[0].ID != first || list[0].Key != key || list[0].Open || list[0].Event != 0 || list[1].Data == nil ||
		list[2].ExpiresAt.Sub(list[2].CreatedAt).Round(time.Hour) != 84*time.Hour {
		t.Errorf("all are %+v", list)
	}
	r.exec(`UPDATE cleanups SET expires_at = clock_timestamp() WHERE data = 'later'`)
	if got := r.expired(key); len(got) != 3 {
		t.Errorf("after its ttl, expired are %q", got)
	}
	for range 2 { // I14
		if err := r.store.Delete(r.ctx, key, second); err != nil {
			t.Error(err)
		}
		if err := r.store.Delete(r.ctx, others[0], first); err != nil {
			t.Error(err)
		}
	}
	if got := r.all(key); len(got) != 2 || got[0].ID != first {
		t.Errorf("left are %+v", got)
	}
	for _, other := range others {
		if got := r.expired(other); !slices.Equal(got, []string{"other"}) {
			t.Errorf("of %s are left %q", other, got)
		}
	}
}

// TestListExpiredLeavesOut what belongs to an event that is in the queue.
func TestListExpiredLeavesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	publishes, cleans := r.emit(canvas), r.emit(canvas)
	r.put(key, 0, "free")
	r.put(key, 0, "published")
	r.put(key, 0, "cleaned")
	r.exec(`UPDATE cleanups SET event_id = $1 WHERE data = 'published'`, int64(publishes.ID))
	r.exec(`UPDATE cleanups SET cleaned_by = $1 WHERE data = 'cleaned'`, int64(cleans.ID))
	if got := r.expired(key); !slices.Equal(got, []string{"free"}) {
		t.Errorf("expired are %q", got)
	}
	r.end(publishes)
	r.end(cleans)
	if got := r.expired(key); len(got) != 3 {
		t.Errorf("when the events have ended, expired are %q", got)
	}
}

// TestStoreWritesInTheCallersTransaction: what is put and deleted in one that is rolled back is not.
func TestStoreWritesInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	id := r.put(key, 0, "before")
	for _, failure := range []error{errors.New("not yet"), nil} {
		err := r.queue.InTx(r.ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			store := NewStore(tx)
			if err := store.Delete(ctx, key, id); err != nil {
				return err
			}
			if _, err := store.Put(ctx, key, Replace, []byte("after")); err != nil {
				return err
			}
			if list, err := store.ListExpired(ctx, key); err != nil || len(list) != 1 || string(list[0].Data) != "after" {
				t.Errorf("within it, expired are %+v, %v", list, err)
			}
			return failure
		})
		want := "after"
		if failure != nil {
			want = "before"
		}
		if got := r.expired(key); !errors.Is(err, failure) || !slices.Equal(got, []string{want}) {
			t.Errorf("ended with %v, expired are %q, want %s", err, got, want)
		}
	}
}

func TestStoreRefusesInvalidEntries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := keyOf(t, Config{Key: "k"}, nil)
	if _, err := r.store.Put(r.ctx, key, -1, nil); err == nil {
		t.Error("a negative ttl was put")
	}
	if _, err := r.store.Put(r.ctx, Key{Canvas: canvas, Component: "c"}, 0, nil); err == nil {
		t.Error("half a key was put")
	}
	if _, err := r.store.ListAll(r.ctx, Key{}); err == nil {
		t.Error("no key was listed")
	}
	if err := r.store.Delete(r.ctx, Key{}, 1); err == nil {
		t.Error("no key was deleted from")
	}
}
