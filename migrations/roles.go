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

// rolesPath is the line of roles that has the schema.
const rolesPath = "SET LOCAL search_path = public;"

// RolePrefix begins the names of the roles.
const RolePrefix = "queue_"

var rolePrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)

// Roles is Migrator.Roles for the schema public.
func Roles(prefix string) (string, error) { return In("").Roles(prefix) }

// Roles returns the SQL that makes the roles of the queue and grants each what it
// needs: emitter, sql_emitter, worker, cron, operator and reader, behind the prefix,
// which is of lower-case letters, digits and underscores. Roles belong to the whole
// server: two queues on one need two prefixes if no login shall work on both. It is
// for an administrator who runs it with psql, after each Up.
func (m Migrator) Roles(prefix string) (string, error) {
	if err := m.Schema.Validate(); err != nil {
		return "", err
	}
	if !rolePrefix.MatchString(prefix) {
		return "", fmt.Errorf("the prefix of the roles is %q: use lower-case letters, digits and underscores, at most 41", prefix)
	}
	own := strings.ReplaceAll(roles, RolePrefix, prefix)
	return strings.Replace(own, rolesPath, "SET LOCAL search_path = "+m.Schema.Identifier()+";", 1), nil
}
