package eventctl

import (
	"os"
	"os/user"

	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/pgstore"
)

// actor is the user of the program, for the audit log.
func actor(store *pgstore.Store) audit.Actor {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return audit.Actor{Name: "os:" + actorOr("", store), Source: host, Via: "eventctl"}
}

// actorOr returns who adds a rule or cancels events: the given name, or that of the user of the operating system, or, as
// in a container without one, that of the database.
func actorOr(given string, store *pgstore.Store) string {
	if given != "" {
		return given
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return store.Pool().Config().ConnConfig.User
}
