package pgstore

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUpDeadPeers has the kernel end a connection whose data was not
// acknowledged for deadPeerTimeout; keep-alives alone do not, while data waits.
func giveUpDeadPeers(_, _ string, conn syscall.RawConn) error {
	var err error
	if controlErr := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadPeerTimeout.Milliseconds()))
	}); controlErr != nil {
		return controlErr
	}
	if err == unix.EOPNOTSUPP || err == unix.ENOPROTOOPT { // a Unix socket
		return nil
	}
	return err
}
