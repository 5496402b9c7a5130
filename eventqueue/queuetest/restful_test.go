package queuetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnectionRestsBetweenMessagesOnly has the server notify more, right after its answer, than one read takes.
func TestConnectionRestsBetweenMessagesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer func() { _, _ = client.Close(), server.Close() }()
		ready := []byte{readyForQuery, 0, 0, 0, 5, outsideTransaction}
		sent := bytes.Clone(ready)
		for range 50 {
			const payload = 7000
			sent = append(binary.BigEndian.AppendUint32(append(sent, 'A'), payload+4), make([]byte, payload)...)
		}
		go func() { _, _ = server.Write(sent) }() // before the answers to those who ask
		go func() {
			for asked := make([]byte, 5); ; {
				if _, err := io.ReadFull(server, asked); err != nil {
					return
				}
				go func() { _, _ = server.Write(ready) }()
			}
		}()
		begun := time.Now()
		time.AfterFunc(2*time.Hour, func() { _ = server.Close() }) // ends one that waits for what nobody sends
		r := &restful{Conn: client, clock: &Clock{}, woken: make(chan struct{}, 1), answers: 1}
		if err := r.SetDeadline(begun.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if !bytes.Equal(got, sent) || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Hour {
			t.Errorf("read %d bytes of %d, and after %s: %v", len(got), len(sent), time.Since(begun), err)
		}
	})
}
