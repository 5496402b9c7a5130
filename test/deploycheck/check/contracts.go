package check

import (
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
	artifactregistry "google.golang.org/api/artifactregistry/v1"
	iam "google.golang.org/api/iam/v1"
	pubsub "google.golang.org/api/pubsub/v1"
	run "google.golang.org/api/run/v2"
	secretmanager "google.golang.org/api/secretmanager/v1"
	sqladmin "google.golang.org/api/sqladmin/v1"
)

// contract describes a resource of Terraform's provider. The provider names the fields of the API
// that it calls, but for some; so a block is decoded strictly into the object of the API.
type contract struct {
	object   func() any        // nil: own has all attributes
	own      []string          // attributes of the provider, which the object does not have
	renamed  map[string]string // fields of the object that the provider has another name for
	required []string
	computed map[string]func(map[string]cty.Value) cty.Value // what can be referred to and is not in the block
}

func computed(format ...string) func(map[string]cty.Value) cty.Value {
	return func(values map[string]cty.Value) cty.Value {
		var text strings.Builder
		for _, part := range format {
			if v, ok := values[part]; ok && v.Type() == cty.String && v.IsKnown() {
				part = v.AsString()
			}
			text.WriteString(part)
		}
		return cty.StringVal(text.String())
	}
}

// member is how IAM names a service account.
const member = "serviceAccount:"

var iamMember = contract{own: []string{"project", "topic", "subscription", "secret_id", "service_account_id", "name", "location", "role", "member"}, required: []string{"role", "member"}}

var contracts = map[string]contract{
	"google_project_service": {own: []string{"service", "disable_on_destroy"}, required: []string{"service"}},
	"google_artifact_registry_repository": {object: func() any { return new(artifactregistry.Repository) }, own: []string{"repository_id", "location"},
		required: []string{"repository_id", "location", "format"}},
	"google_pubsub_topic": {object: func() any { return new(pubsub.Topic) }, required: []string{"name"},
		computed: map[string]func(map[string]cty.Value) cty.Value{"id": computed("projects/", exampleProject, "/topics/", "name")}},
	"google_pubsub_subscription": {object: func() any { return new(pubsub.Subscription) }, required: []string{"name", "topic"},
		computed: map[string]func(map[string]cty.Value) cty.Value{"id": computed("projects/", exampleProject, "/subscriptions/", "name")}},
	"google_service_account": {object: func() any { return new(iam.ServiceAccount) }, own: []string{"account_id"}, required: []string{"account_id"},
		computed: map[string]func(map[string]cty.Value) cty.Value{
			"email":  computed("account_id", "@", exampleProject, ".iam.gserviceaccount.com"),
			"member": computed(member, "account_id", "@", exampleProject, ".iam.gserviceaccount.com"),
			"name":   computed("projects/", exampleProject, "/serviceAccounts/", "account_id", "@", exampleProject, ".iam.gserviceaccount.com"),
		}},
	"google_project_iam_member":               iamMember,
	"google_pubsub_topic_iam_member":          iamMember,
	"google_pubsub_subscription_iam_member":   iamMember,
	"google_secret_manager_secret_iam_member": iamMember,
	"google_service_account_iam_member":       iamMember,
	"google_cloud_run_v2_service_iam_member":  iamMember,
	"google_sql_database_instance": {object: func() any { return new(sqladmin.DatabaseInstance) }, own: []string{"deletion_protection"},
		renamed: map[string]string{"disk_autoresize": "storageAutoResize"}, required: []string{"name", "region", "database_version"},
		computed: map[string]func(map[string]cty.Value) cty.Value{"connection_name": computed(exampleProject, ":", "region", ":", "name")}},
	"google_sql_database": {object: func() any { return new(sqladmin.Database) }, required: []string{"name", "instance"}},
	"google_sql_user":     {object: func() any { return new(sqladmin.User) }, required: []string{"name", "instance", "type"}},
	"google_secret_manager_secret": {object: func() any { return new(secretmanager.Secret) }, own: []string{"secret_id"},
		renamed: map[string]string{"auto": "automatic"}, required: []string{"secret_id"},
		computed: map[string]func(map[string]cty.Value) cty.Value{"id": computed("projects/", exampleProject, "/secrets/", "secret_id")}},
	"google_cloud_run_v2_worker_pool": {object: func() any { return new(run.GoogleCloudRunV2WorkerPool) }, own: []string{"location", "deletion_protection"},
		required: []string{"name", "location"}},
	"google_cloud_run_v2_service": {object: func() any { return new(run.GoogleCloudRunV2Service) }, own: []string{"location", "deletion_protection"},
		required: []string{"name", "location"},
		computed: map[string]func(map[string]cty.Value) cty.Value{"uri": computed("https://", "name", ".example.run.app")}},
	"google_cloud_run_v2_job": {object: func() any { return new(run.GoogleCloudRunV2Job) }, own: []string{"location", "deletion_protection"},
		required: []string{"name", "location"}},
}

// fill decodes a body into an object of an API, strictly: each attribute and each block is a field of it.
func (m *module) fill(where string, object any, body *hclsyntax.Body, scope map[string]cty.Value, c contract) {
	m.fillStruct(where, reflect.ValueOf(object).Elem(), body, scope, c, true)
}

func (m *module) fillStruct(where string, into reflect.Value, body *hclsyntax.Body, scope map[string]cty.Value, c contract, top bool) {
	for name, a := range body.Attributes {
		if top && (slices.Contains(c.own, name) || slices.Contains([]string{"for_each", "count", "depends_on"}, name)) {
			continue
		}
		field, ok := fieldOf(into, name, c)
		if !ok {
			m.r.problem(where, "%s has no %s", into.Type().Name(), name)
			continue
		}
		m.set(where+" "+name, field, m.evaluate(a.Expr, scope))
	}
	for _, b := range body.Blocks {
		if b.Type != "dynamic" {
			m.fillBlock(where, into, b.Type, b.Body, scope, c)
			continue
		}
		m.fillDynamic(where, into, b, scope, c)
	}
}

// fillDynamic fills in a block for each element of what a dynamic block is for.
func (m *module) fillDynamic(where string, into reflect.Value, b *hclsyntax.Block, scope map[string]cty.Value, c contract) {
	each, ok := b.Body.Attributes["for_each"]
	if !ok || len(b.Labels) != 1 || len(b.Body.Blocks) != 1 || b.Body.Blocks[0].Type != "content" {
		m.r.problem(where, "a dynamic block has no for_each or no content")
		return
	}
	over := m.evaluate(each.Expr, scope)
	if !over.IsKnown() || !over.CanIterateElements() {
		return // reported already
	}
	for it := over.ElementIterator(); it.Next(); {
		key, value := it.Element()
		inner := map[string]cty.Value{b.Labels[0]: cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		for name, v := range scope {
			inner[name] = v
		}
		m.fillBlock(where, into, b.Labels[0], b.Body.Blocks[0].Body, inner, c)
	}
}

func (m *module) fillBlock(where string, into reflect.Value, name string, body *hclsyntax.Body, scope map[string]cty.Value, c contract) {
	field, ok := fieldOf(into, name, c)
	if !ok {
		m.r.problem(where, "%s has no %s", into.Type().Name(), name)
		return
	}
	t := field.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		m.r.problem(where, "%s is no block", name)
		return
	}
	made := reflect.New(t.Elem())
	m.fillStruct(where+" "+name, made.Elem(), body, scope, c, false)
	switch {
	case field.Kind() == reflect.Slice:
		field.Set(reflect.Append(field, made))
	case !field.IsNil():
		m.r.problem(where, "it has a second %s", name)
	default:
		field.Set(made)
	}
}

// fieldOf is the field that an attribute of Terraform means: some_name is someName in the API.
func fieldOf(into reflect.Value, name string, c contract) (reflect.Value, bool) {
	wanted, ok := c.renamed[name]
	if !ok {
		parts := strings.Split(name, "_")
		for i, part := range parts[1:] {
			if part != "" {
				parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
			}
		}
		wanted = strings.Join(parts, "")
	}
	for i := range into.NumField() {
		if tag, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ","); tag == wanted {
			return into.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func (m *module) set(where string, field reflect.Value, v cty.Value) {
	if !v.IsWhollyKnown() {
		return // reported already
	}
	want, err := gocty.ImpliedType(field.Interface())
	if err != nil {
		m.r.problem(where, "%v", err)
		return
	}
	if v, err = convert.Convert(v, want); err == nil {
		err = gocty.FromCtyValue(v, field.Addr().Interface())
	}
	if err != nil {
		m.r.problem(where, "%v", err)
	}
}
