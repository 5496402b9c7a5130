package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/shortkey"
)

// emitTimeout bounds the transaction: senders do not wait longer.
const emitTimeout = 20 * time.Second

// take casts a genuine request and emits its events.
func (h *Handler) take(ctx context.Context, source Source, r *Request, log *zap.Logger) (Outcome, *refusal) {
	events, err := source.Cast(ctx, r)
	switch {
	case errors.Is(err, ErrUnusable):
		return "", refuse(http.StatusBadRequest, err)
	case err != nil:
		return "", refuse(http.StatusInternalServerError, fmt.Errorf("cast: %w", err))
	case len(events) == 0:
		log.Debug("webhook ignored", zap.String("type", r.Type))
		return Ignored, nil
	}
	if source.RefuseOverLimit {
		switch wait, err := h.config.Check(ctx, r.Canvas); {
		case err != nil:
			return "", refuse(http.StatusServiceUnavailable, fmt.Errorf("check the canvas: %w", err))
		case wait > 0:
			return "", &refusal{status: http.StatusTooManyRequests, reason: fmt.Errorf("the canvas has to wait for %s", wait), wait: wait}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, emitTimeout)
	defer cancel()
	first, err := h.emit(ctx, r, slices.Clone(events))
	var invalid *eventqueue.InvalidError
	switch {
	case errors.As(err, &invalid):
		return "", refuse(http.StatusUnprocessableEntity, err)
	case err != nil:
		return "", refuse(http.StatusServiceUnavailable, err)
	}
	log.Debug("webhook accepted", zap.String("type", r.Type), zap.Int("events", len(events)),
		zap.Stringer("first", first.ID), zap.Bool("repeat", !first.New))
	if !first.New {
		return Duplicate, nil
	}
	return Accepted, nil
}

// emit writes the events of one delivery in one transaction, unless the delivery is a
// repeat. The first event without a key of its own gets the key of the delivery, is
// written first, and decides for all.
func (h *Handler) emit(ctx context.Context, r *Request, events []eventqueue.NewEvent) (first eventqueue.Emitted, err error) {
	for i := range events {
		events[i].Canvas = r.Canvas
	}
	i := slices.IndexFunc(events, func(e eventqueue.NewEvent) bool { return e.UniqueKey == "" })
	decides := i >= 0 && r.Delivery != ""
	if decides {
		events[i].UniqueKey, events[i].UniqueFor = deliveryKey(r), h.config.RetainDelivery
	}
	if !decides || len(events) == 1 {
		// One call takes all keys in their order. With two calls, deliveries that have the
		// same keys could deadlock.
		emitted, err := h.queue.EmitUnique(ctx, events...)
		if err != nil {
			return first, err
		}
		return emitted[0], nil
	}
	err = h.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		emitted, err := tx.EmitUnique(ctx, events[i])
		if err != nil {
			return err
		}
		if first = emitted[0]; !first.New {
			return nil
		}
		_, err = tx.Emit(ctx, slices.Delete(events, i, i+1)...)
		return err
	})
	return first, err
}

// deliveryKey is the unique key of a delivery. For an id that cannot be a key it has
// the hash of the id.
func deliveryKey(r *Request) string {
	return "webhook " + r.Source + " " + shortkey.Of(r.Delivery, 128)
}
