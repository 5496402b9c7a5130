//go:build !linux

package pgstore

import "syscall"

// giveUpDeadPeers needs a socket option that only Linux has; elsewhere
// keep-alives and the statements' own deadlines have to do.
func giveUpDeadPeers(_, _ string, _ syscall.RawConn) error { return nil }
