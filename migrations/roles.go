package migrations

import (
	_ "embed" // for roles.sql
	"fmt"
	"regexp"
	"strings"
)

// roles is a text that a database administrator can run as it is.
//
//go:embed roles/roles.sql
var roles string

// RolePrefix is what the names of the roles begin with.
const RolePrefix = "queue_"

var rolePrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)

// Roles returns the SQL that makes the roles of the queue and grants each what it
// needs: emitter, sql_emitter, worker, cron, operator and reader, behind the prefix,
// which is of lower-case letters, digits and underscores. Roles belong to the whole
// server: two queues on one need two prefixes if nobody shall work on both. It is
// for an administrator who runs it with psql, after each Up.
func Roles(prefix string) (string, error) {
	if !rolePrefix.MatchString(prefix) {
		return "", fmt.Errorf("the prefix of the roles is %q: use lower-case letters, digits and underscores, at most 41", prefix)
	}
	return strings.ReplaceAll(roles, RolePrefix, prefix), nil
}
