package services

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser returns the user that Postgres shall run as: nil for oneself, and
// for root, as whom it refuses to run, postgres or nobody.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		// Some systems write the ids of nobody as negative numbers.
		uid, uidErr := strconv.ParseInt(u.Uid, 10, 64)
		gid, gidErr := strconv.ParseInt(u.Gid, 10, 64)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("postgres refuses to run as root, and there is neither a user postgres nor a user nobody: add one, or run this as another user")
}
