package pgsession

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// closedByPeer reports whether the other side has closed a connection that is not in use. It
// asks the kernel and sends nothing. It does not see through a connection that is not one of the
// operating system, such as a dialer's own.
func closedByPeer(conn net.Conn) (closed bool) {
	if wrapper, is := conn.(interface{ NetConn() net.Conn }); is { // TLS
		conn = wrapper.NetConn()
	}
	system, is := conn.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return false // its next use says why
	}
	err = raw.Control(func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(events, 0)
		closed = err == nil && n > 0 && events[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return closed && err == nil
}
