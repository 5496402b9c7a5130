package check

import (
	"slices"
	"strings"

	sqladmin "google.golang.org/api/sqladmin/v1"
)

// Files checks deploy/ in a directory that has the files of the repository.
func Files(directory string) (*Report, []Program) {
	r, t := &Report{}, tree(directory)
	terraform(r, t, atFirst())
	m := terraform(r, t, everything())
	m.checkUsed()
	fromTerraform := m.programs()
	m.checkMayRead(fromTerraform)
	m.checkSubscriptions()
	m.checkDatabase()
	checkGrants(r, "deploy/terraform", m.grants(), extraGrants())

	fromYAML := cloudRun(r, t)
	checkScript(r, t, fromYAML)
	fromKubernetes := kubernetes(r, t)

	dashboards(r, t)
	checkDocumentedRoles(r, t)
	checkRoles(r, t)
	programs := slices.Concat(fromTerraform, fromYAML, fromKubernetes)
	checkPrograms(r, t, programs)
	checkPages(r, t, m, programs)
	checkAll(r, "deploy/terraform", fromTerraform, pooled, served, job)
	checkAll(r, "deploy/cloudrun", fromYAML, pooled, served, job)
	checkAll(r, "deploy/gke", fromKubernetes, pod, job)
	slices.Sort(r.Problems)
	return r, programs
}

// checkAll checks that a way to deploy has each program.
func checkAll(r *Report, where string, programs []Program, kinds ...kind) {
	for _, k := range kinds {
		if !slices.ContainsFunc(programs, func(p Program) bool { return p.Kind == k }) {
			r.problem(where, "it has no %s", k)
		}
	}
	for _, binary := range []string{"worker", "cron", "eventctl"} {
		if !slices.ContainsFunc(programs, func(p Program) bool { return p.binary() == binary }) {
			r.problem(where, "nothing starts %s", binary)
		}
	}
}

// checkDatabase checks that service accounts can log in to the database, and no other user gets in.
func (m *module) checkDatabase() {
	var users []string
	for _, made := range m.made {
		where := "deploy/terraform " + made.address
		switch o := made.object.(type) {
		case *sqladmin.User:
			users = append(users, o.Name)
			if o.Type != "CLOUD_IAM_SERVICE_ACCOUNT" {
				m.r.problem(where, "a user with a password would have it in the state")
			}
		case *sqladmin.DatabaseInstance:
			s := o.Settings
			if s == nil || !slices.ContainsFunc(s.DatabaseFlags, func(f *sqladmin.DatabaseFlags) bool {
				return f.Name == "cloudsql.iam_authentication" && f.Value == "on"
			}) {
				m.r.problem(where, "service accounts cannot log in: it needs cloudsql.iam_authentication")
			}
			if s == nil || s.ConnectorEnforcement != "REQUIRED" || s.IpConfiguration == nil || len(s.IpConfiguration.AuthorizedNetworks) > 0 {
				m.r.problem(where, "others than the Cloud SQL connectors get in")
			}
		}
	}
	checkUsers(m.r, "deploy/terraform", users)
}

// checkScript checks deploy/cloudrun/resources.sh, and that it makes what the YAML beside it names.
func checkScript(r *Report, t tree, programs []Program) {
	const name = "deploy/cloudrun/resources.sh"
	all := commands(r, name, t.read(r, name))
	checkGrants(r, name, scriptGrants(all), nil)
	checkScriptSubscriptions(r, name, all)
	var users []string
	made := map[string]bool{}
	for _, c := range all {
		switch {
		case c.has("gcloud", "sql", "users", "create"):
			users = append(users, c.words[4])
		case c.has("gcloud", "sql", "instances", "create"):
			if flags, _ := c.flag("database-flags"); flags != "cloudsql.iam_authentication=on" {
				r.problem(name, "service accounts cannot log in: it needs cloudsql.iam_authentication")
			}
			if enforced, _ := c.flag("connector-enforcement"); enforced != "REQUIRED" {
				r.problem(name, "others than the Cloud SQL connectors get in")
			}
		case c.has("gcloud", "secrets", "create"), c.has("gcloud", "iam", "service-accounts", "create"):
			made[c.words[slices.Index(c.words, "create")+1]] = true
		}
	}
	checkUsers(r, name, users)
	for _, p := range programs {
		if !made[p.Account] {
			r.problem(p.Where, "%s makes no account %s", name, p.Account)
		}
		for what, secret := range p.Secrets {
			if !made[secret] && !strings.HasPrefix(what, "all of") {
				r.problem(p.Where, "%s makes no secret %s", name, secret)
			}
		}
	}
}
