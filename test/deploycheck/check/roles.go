package check

import (
	"regexp"
	"slices"
	"strings"

	"eventsv2/migrations"
)

// databaseRoles are the roles of the queue that users of the database get, by the account that the user is of.
var databaseRoles = map[string]string{"events-worker": "queue_worker", "events-cron": "queue_cron", "events-emitter": "queue_emitter"}

// checkRoles checks that deploy/grants.sql gives every account its role, and that the role exists: in the SQL of
// "eventctl migrate roles" and in docs/database.md.
func checkRoles(r *Report, t tree) {
	const name = "deploy/grants.sql"
	text := t.read(r, name)
	users := map[string]string{}
	for _, set := range regexp.MustCompile(`(?m)^\\set (\w+) ([a-z-]+)@ :project \.iam$`).FindAllStringSubmatch(text, -1) {
		users[set[1]] = set[2]
	}
	sql, err := migrations.Roles(migrations.RolePrefix)
	if err != nil {
		r.problem(name, "%v", err)
	}
	page := t.read(r, "docs/database.md")
	given := map[string]string{}
	for _, g := range regexp.MustCompile(`(?m)^GRANT (\w+) TO :"(\w+)";$`).FindAllStringSubmatch(text, -1) {
		r.count("roles")
		given[users[g[2]]] = g[1]
		if !strings.Contains(sql, "'"+g[1]+"'") && !strings.Contains(sql, "ROLE "+g[1]) {
			r.problem(name, "eventctl migrate roles makes no role %s", g[1])
		}
		if !strings.Contains(page, "| `"+g[1]+"` |") {
			r.problem(name, "docs/database.md has no role %s", g[1])
		}
	}
	for account, role := range databaseRoles {
		if given[account] != role {
			r.problem(name, "the user of %s gets %q, and needs %s", account, given[account], role)
		}
	}
	if n := strings.Count(text, "GRANT "); n != len(given) {
		r.problem(name, "it has %d grants, of which the checker can read %d", n, len(given))
	}
}

// checkUsers checks that the users of the database are those that get a role.
func checkUsers(r *Report, where string, users []string) {
	slices.Sort(users)
	var needed []string
	for account := range databaseRoles {
		needed = append(needed, account+"@"+exampleProject+".iam")
	}
	slices.Sort(needed)
	if !slices.Equal(users, needed) {
		r.problem(where, "it makes the users %v of the database, and needed are %v", users, needed)
	}
}
