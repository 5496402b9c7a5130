package memnotify

import (
	"encoding/hex"
	"fmt"
	"strconv"
)

// leaseRef names one delivery of the notification in a slot. The generation
// changes with every delivery and whenever the slot is emptied, so that an old ack
// ID never applies to a later delivery.
type leaseRef struct {
	slot       uint32
	generation uint32
}

// ackIDLen is the length of an ack ID: slot and generation in hexadecimal.
const ackIDLen = 16

func (r leaseRef) appendAckID(b []byte) []byte {
	return hex.AppendEncode(b, []byte{
		byte(r.slot >> 24), byte(r.slot >> 16), byte(r.slot >> 8), byte(r.slot),
		byte(r.generation >> 24), byte(r.generation >> 16), byte(r.generation >> 8), byte(r.generation),
	})
}

// parseAckID refuses an ack ID that no notifier of this package can have made, as
// Pub/Sub refuses a malformed one.
func parseAckID(s string) (leaseRef, error) {
	if len(s) == ackIDLen {
		if both, err := strconv.ParseUint(s, 16, 64); err == nil {
			return leaseRef{slot: uint32(both >> 32), generation: uint32(both)}, nil
		}
	}
	return leaseRef{}, fmt.Errorf("ack ID %q was never made by this notifier: pass deliveries on as Pull returned them", s)
}
