package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// grant is a role that an account has on something.
type grant struct{ account, role, on string }

func (g grant) String() string { return fmt.Sprintf("%s has %s on %s", g.account, g.role, g.on) }

// project is the target of grants that hold for all of it.
const project = "project " + exampleProject

// wanted are the rights of each account, and no others.
func wanted() []grant {
	const topic, subscription = "topic events-v2", "subscription events-v2-workers"
	return []grant{
		{"events-worker", "roles/cloudsql.client", project},
		{"events-worker", "roles/cloudsql.instanceUser", project},
		{"events-worker", "roles/pubsub.publisher", topic},
		{"events-worker", "roles/pubsub.viewer", topic},
		{"events-worker", "roles/pubsub.subscriber", subscription},
		{"events-worker", "roles/pubsub.viewer", subscription},
		{"events-worker", "roles/secretmanager.secretAccessor", "secret events-handlers"},
		{"events-cron", "roles/cloudsql.client", project},
		{"events-cron", "roles/cloudsql.instanceUser", project},
		{"events-cron", "roles/pubsub.publisher", topic},
		{"events-emitter", "roles/cloudsql.client", project},
		{"events-emitter", "roles/cloudsql.instanceUser", project},
		{"events-emitter", "roles/pubsub.publisher", topic},
		{"events-migrations", "roles/cloudsql.client", project},
		{"events-migrations", "roles/secretmanager.secretAccessor", "secret events-owner-database-url"},
	}
}

// checkGrants checks that the accounts have the rights that they need, and no others.
func checkGrants(r *Report, where string, have, also []grant) {
	needed := append(wanted(), also...)
	for _, g := range have {
		r.count("grants")
		if !slices.Contains(needed, g) {
			r.problem(where, "%s, and does not need it", g)
		}
	}
	for _, g := range needed {
		if !slices.Contains(have, g) {
			r.problem(where, "it does not come to pass that %s", g)
		}
	}
}

// checkDocumentedRoles checks that the roles that docs/configuration.md asks for are among those that are wanted.
func checkDocumentedRoles(r *Report, t tree) {
	const page = "docs/configuration.md"
	sentence := regexp.MustCompile(`(?s)The service account of a worker needs (.*?)\. That of a program which only\s+publishes, such as cron, needs (.*?)\. With`).
		FindStringSubmatch(t.read(r, page))
	if sentence == nil {
		r.problem(page, "what it says of the roles of service accounts is read no longer")
		return
	}
	for i, account := range []string{"events-worker", "events-cron"} {
		for _, role := range regexp.MustCompile(`roles/[a-z.]+`).FindAllString(sentence[i+1], -1) {
			if !slices.ContainsFunc(wanted(), func(g grant) bool { return g.account == account && g.role == role }) {
				r.problem(page, "it says that %s needs %s", account, role)
			}
		}
	}
}

// grants are those that the module makes.
func (m *module) grants() (all []grant) {
	on := map[string]string{"google_project_iam_member": "project", "google_pubsub_topic_iam_member": "topic", "google_pubsub_subscription_iam_member": "subscription",
		"google_secret_manager_secret_iam_member": "secret_id", "google_service_account_iam_member": "service_account_id", "google_cloud_run_v2_service_iam_member": "name"}
	for _, made := range m.made {
		attribute, ok := on[made.kind]
		if !ok {
			continue
		}
		g := grant{text(made.values["member"]), text(made.values["role"]), strings.TrimSuffix(attribute, "_id") + " " + last(text(made.values[attribute]))}
		if address, is := strings.CutPrefix(g.account, member); is {
			if match := serviceAccount.FindStringSubmatch(address); match != nil {
				g.account = match[1]
			}
		}
		g.on = strings.Replace(g.on, "name ", "service ", 1)
		all = append(all, g)
	}
	return all
}

// text is a value that is a text; "" for others.
func text(v cty.Value) string {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// last is the last part of the name of a resource.
func last(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// extraGrants are for the parts that variables switch on.
func extraGrants() []grant {
	all := []grant{
		{"allUsers", "roles/run.invoker", "service events-webhooks"},
		{"events-worker", "roles/secretmanager.secretAccessor", "secret events-github-secret"},
	}
	for _, account := range []string{"events-worker", "events-cron", "events-emitter", "events-migrations"} {
		all = append(all, grant{member + exampleProject + ".svc.id.goog[events/" + account + "]", "roles/iam.workloadIdentityUser",
			"service_account " + account + "@" + exampleProject + ".iam.gserviceaccount.com"})
	}
	return all
}

// scriptGrants are those that commands of gcloud make.
func scriptGrants(all []command) (made []grant) {
	for _, c := range all {
		if !slices.Contains(c.words, "add-iam-policy-binding") {
			continue
		}
		at := slices.Index(c.words, "add-iam-policy-binding")
		if at+1 >= len(c.words) {
			continue
		}
		on := c.words[at+1]
		kind := strings.TrimSuffix(strings.ReplaceAll(c.words[at-1], "-", "_"), "s")
		address, _ := c.flag("member")
		role, _ := c.flag("role")
		g := grant{strings.TrimPrefix(address, member), role, kind + " " + on}
		if match := serviceAccount.FindStringSubmatch(g.account); match != nil {
			g.account = match[1]
		} else {
			g.account = address
		}
		made = append(made, g)
	}
	return made
}
