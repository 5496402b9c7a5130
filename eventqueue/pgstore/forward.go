package pgstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/workerhandlers"
)

// forwardPayload is the beginning of what a worker is told that is to try events; their ids follow, with commas between them.
const forwardPayload = "try:"

// directChannelPrefix is the beginning of the channel of each worker, before its number.
const directChannelPrefix = "events_v2_worker_"

// directChannel is the channel of one worker.
func directChannel(number eventqueue.WorkerNumber) string {
	return directChannelPrefix + strconv.Itoa(int(number))
}

// eventIDs reads the ids of a payload. It leaves out what is none: anybody may notify.
func eventIDs(list string) (ids []eventqueue.EventID) {
	for text := range strings.SplitSeq(list, ",") {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
			ids = append(ids, eventqueue.EventID(id))
		}
	}
	return ids
}

const peersSQL = `
WITH connected AS MATERIALIZED (` + pgsession.LiveWorkersSQL + `
)
SELECT number, handlers FROM event_workers WHERE stopped_at IS NULL AND number IN (SELECT number FROM connected)`

// Peers implements worker.Peers.
func (s *Store) Peers(ctx context.Context) ([]worker.Peer, error) {
	rows, err := s.pool.Query(ctx, peersSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w worker.Peer, err error) {
		var handlers []byte
		err = row.Scan(&w.Number, &handlers)
		w.Handlers, _ = workerhandlers.Read(handlers)
		return w, err
	})
}

// Forward implements worker.Peers.
func (s *Store) Forward(ctx context.Context, to eventqueue.WorkerNumber, ids []eventqueue.EventID) error {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.String()
	}
	_, err := s.pool.Exec(ctx, `SELECT events_v2_notify($1, $2)`, s.channel(directChannel(to)), forwardPayload+strings.Join(list, ","))
	return err
}
