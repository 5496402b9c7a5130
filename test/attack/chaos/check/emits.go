package check

import (
	"time"

	"eventsv2/eventqueue"
)

// Acknowledgement is what an emitter knows of an event.
type Acknowledgement int

// What an emitter may know.
const (
	Unknown  Acknowledgement = iota // the call failed: it may exist or not
	Accepted                        // it must exist
	Undone                          // its transaction was rolled back: it must not exist
	Repeated                        // another event had its unique key: it must not exist
)

// Repeat is an emit that made no event, because another had its unique key.
type Repeat struct {
	Of  eventqueue.EventID
	Key string
	At  time.Time // when its call began
}

// Emission is the accepted emit of an event with an ordering key.
type Emission struct {
	Emitter         int
	Began, Returned time.Time // of the call
	Index           int       // within the call
	Delayed         bool
}
