package queuetest

import (
	"encoding/binary"
	"io"
)

// Kinds of messages of the protocol of Postgres. All but the first one that a client sends begin with their kind.
const (
	startup       = 0
	query         = 'Q'
	syncing       = 'S'
	functionCall  = 'F'
	terminate     = 'X'
	readyForQuery = 'Z'
)

// outsideTransaction is the status of a server that is ready for a query.
const outsideTransaction = 'I'

// frames finds the messages of one direction of a connection.
type frames struct {
	client  bool // it is that of a client that has sent its first message
	head    []byte
	body    int // bytes of the message that are to come
	ofReady bool
}

// read calls found for each message that begins in b; of readyForQuery with its status, when that has come.
func (f *frames) read(b []byte, found func(kind, status byte)) {
	for len(b) > 0 {
		if f.body > 0 {
			if f.ofReady {
				found(readyForQuery, b[0])
				f.ofReady = false
			}
			n := min(f.body, len(b))
			f.body, b = f.body-n, b[n:]
			continue
		}
		f.head, b = append(f.head, b[0]), b[1:]
		kind, length, whole := f.header()
		if !whole {
			continue
		}
		f.head, f.body, f.ofReady = f.head[:0], length, kind == readyForQuery
		if kind != readyForQuery {
			found(kind, 0)
		}
	}
}

// within reports whether the rest of a message is to come.
func (f *frames) within() bool { return f.body > 0 || len(f.head) > 0 }

// header reads the kind of a message, and how long its body is.
func (f *frames) header() (kind byte, body int, whole bool) {
	head := f.head
	if !f.client && head[0] == 0 { // the first message, of whose length this is the first byte
		if len(head) < 4 {
			return 0, 0, false
		}
		f.client = true
		return startup, int(binary.BigEndian.Uint32(head)) - 4, true
	}
	if len(head) < 5 {
		return 0, 0, false
	}
	return head[0], int(binary.BigEndian.Uint32(head[1:])) - 4, true
}

// untilReady reads whole messages until the server is ready for a query, which it leaves out.
func untilReady(r io.Reader) (received []byte, err error) {
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(r, head); err != nil {
			return received, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return received, err
		}
		if head[0] == readyForQuery {
			return received, nil
		}
		received = append(append(received, head...), body...)
	}
}
