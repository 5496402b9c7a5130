package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// module is the Terraform of deploy/terraform, evaluated with some variables.
type module struct {
	r         *Report
	given     map[string]cty.Value
	variables map[string]*hclsyntax.Block
	locals    map[string]*hclsyntax.Attribute
	resources map[string]map[string]*hclsyntax.Block // by type and name
	outputs   map[string]*hclsyntax.Block

	values map[string]cty.Value // of what has been evaluated, by its address
	begun  map[string]bool      // what is being evaluated, so that a circle is noticed
	used   map[string]bool      // addresses that something refers to
	made   []instance
}

// instance is one resource, as Terraform would make it.
type instance struct {
	address string // such as google_service_account.worker, or with [key]
	kind    string
	object  any // of the API, into which the block was decoded; nil where there is none
	values  map[string]cty.Value
}

// terraform evaluates the module of deploy/terraform. given are variables for it.
func terraform(r *Report, t tree, given map[string]cty.Value) *module {
	m := &module{r: r, given: given, variables: map[string]*hclsyntax.Block{}, locals: map[string]*hclsyntax.Attribute{},
		resources: map[string]map[string]*hclsyntax.Block{}, outputs: map[string]*hclsyntax.Block{},
		values: map[string]cty.Value{}, begun: map[string]bool{}, used: map[string]bool{}}
	for _, name := range t.files(r, "deploy/terraform", ".tf") {
		r.count("files")
		file, diagnostics := hclsyntax.ParseConfig([]byte(t.read(r, name)), name, hcl.InitialPos)
		if diagnostics.HasErrors() {
			r.problem(name, "%s", diagnostics.Error())
			continue
		}
		m.declare(name, file.Body.(*hclsyntax.Body)) // as ParseConfig promises
	}
	for name := range m.variables {
		m.value("var." + name)
	}
	for name := range m.locals {
		m.value("local." + name)
	}
	for kind, named := range m.resources {
		for name := range named {
			m.value(kind + "." + name)
		}
	}
	for name, block := range m.outputs {
		m.describes(name, block)
		if a, ok := block.Body.Attributes["value"]; ok {
			m.evaluate(a.Expr, nil)
		}
	}
	return m
}

// checkUsed checks that something refers to each variable and each local. Without an image less is evaluated.
func (m *module) checkUsed() {
	for name := range m.variables {
		m.isUsed("var." + name)
	}
	for name := range m.locals {
		m.isUsed("local." + name)
	}
}

func (m *module) isUsed(address string) {
	if !m.used[address] {
		m.r.problem("deploy/terraform", "nothing uses %s", address)
	}
}

func (m *module) declare(file string, body *hclsyntax.Body) {
	for _, b := range body.Blocks {
		switch {
		case b.Type == "variable" && len(b.Labels) == 1:
			m.variables[b.Labels[0]] = b
			m.describes(b.Labels[0], b)
			if _, ok := b.Body.Attributes["type"]; !ok {
				m.r.problem(file, "the variable %s has no type", b.Labels[0])
			}
		case b.Type == "output" && len(b.Labels) == 1:
			m.outputs[b.Labels[0]] = b
		case b.Type == "locals":
			maps.Copy(m.locals, b.Body.Attributes)
		case b.Type == "resource" && len(b.Labels) == 2:
			if m.resources[b.Labels[0]] == nil {
				m.resources[b.Labels[0]] = map[string]*hclsyntax.Block{}
			}
			m.resources[b.Labels[0]][b.Labels[1]] = b
		case b.Type == "terraform":
			for _, inner := range b.Body.Blocks {
				if inner.Type != "required_providers" {
					m.r.problem(file, "terraform has a block %s: where the state is, is the user's decision", inner.Type)
				}
			}
		case b.Type == "provider":
			for name, a := range b.Body.Attributes {
				if name != "project" && name != "region" {
					m.r.problem(file, "the provider has %s: it finds its credentials itself", name)
				}
				m.evaluate(a.Expr, nil)
			}
		default:
			m.r.problem(file, "the checker does not know a block %s %q", b.Type, b.Labels)
		}
	}
}

func (m *module) describes(name string, b *hclsyntax.Block) {
	if _, ok := b.Body.Attributes["description"]; !ok {
		m.r.problem(b.DefRange().Filename, "the %s %s has no description", b.Type, name)
	}
}

// value returns the value of an address: var.x, local.x, or a resource. Its problems are reported once.
func (m *module) value(address string) cty.Value {
	if v, ok := m.values[address]; ok {
		return v
	}
	if m.begun[address] {
		m.r.problem("deploy/terraform", "%s depends on itself", address)
		return cty.DynamicVal
	}
	m.begun[address] = true
	root, name, _ := strings.Cut(address, ".")
	var v cty.Value
	switch root {
	case "var":
		v = m.variable(name, m.variables[name])
	case "local":
		v = m.evaluate(m.locals[name].Expr, nil)
	default:
		v = m.resource(root, name, m.resources[root][name])
	}
	m.values[address] = v
	return v
}

// variable is the given value or the default, of the variable's type, if its validation lets it through.
func (m *module) variable(name string, b *hclsyntax.Block) cty.Value {
	v, ok := m.given[name]
	if !ok {
		byDefault, has := b.Body.Attributes["default"]
		if !has {
			m.r.problem(b.DefRange().Filename, "the variable %s has no value", name)
			return cty.DynamicVal
		}
		v = m.evaluate(byDefault.Expr, nil)
	}
	if a, has := b.Body.Attributes["type"]; has {
		if want, ok := typeOf(a.Expr); !ok {
			m.r.problem(b.DefRange().Filename, "the checker does not know the type of the variable %s", name)
		} else if converted, err := convert.Convert(v, want); err != nil {
			m.r.problem(b.DefRange().Filename, "the variable %s: %v", name, err)
		} else {
			v = converted
		}
	}
	m.values["var."+name] = v // its validation refers to it
	for _, validation := range b.Body.Blocks {
		condition, message := validation.Body.Attributes["condition"], validation.Body.Attributes["error_message"]
		if validation.Type != "validation" || condition == nil || message == nil {
			m.r.problem(b.DefRange().Filename, "the variable %s has a %s without condition or message", name, validation.Type)
			continue
		}
		m.r.count("validations")
		was := m.used["var."+name]
		if holds := m.evaluate(condition.Expr, nil); holds.Type() == cty.Bool && holds.IsKnown() && holds.False() {
			m.r.problem(b.DefRange().Filename, "the variable %s: %s", name, text(m.evaluate(message.Expr, nil)))
		}
		m.used["var."+name] = was // its own validation is no use
	}
	return v
}

// typeOf reads the types that variables of the module have.
func typeOf(expr hclsyntax.Expression) (cty.Type, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		t, ok := map[string]cty.Type{"string": cty.String, "number": cty.Number, "bool": cty.Bool}[e.Traversal.RootName()]
		return t, ok
	case *hclsyntax.FunctionCallExpr:
		if len(e.Args) != 1 {
			return cty.DynamicPseudoType, false
		}
		of, ok := typeOf(e.Args[0])
		switch e.Name {
		case "set":
			return cty.Set(of), ok
		case "map":
			return cty.Map(of), ok
		case "list":
			return cty.List(of), ok
		}
	}
	return cty.DynamicPseudoType, false
}

// resource evaluates a resource: with for_each it is an object of what it makes by key, with count a list.
func (m *module) resource(kind, name string, b *hclsyntax.Block) cty.Value {
	address := kind + "." + name
	c, known := contracts[kind]
	if !known {
		m.r.problem(b.DefRange().Filename, "the checker does not know %s", kind)
		return cty.DynamicVal
	}
	m.r.count("resources")
	if a, ok := b.Body.Attributes["depends_on"]; ok {
		m.dependsOn(b, a)
	}
	if a, ok := b.Body.Attributes["for_each"]; ok {
		each := map[string]cty.Value{}
		over := m.evaluate(a.Expr, nil)
		if !over.IsKnown() || !over.CanIterateElements() {
			m.r.problem(b.DefRange().Filename, "%s is not for each of anything", address)
			return cty.DynamicVal
		}
		for it := over.ElementIterator(); it.Next(); {
			key, value := it.Element()
			if over.Type().IsSetType() {
				key = value
			}
			if key.Type() != cty.String || !key.IsKnown() {
				m.r.problem(b.DefRange().Filename, "%s is for each of what has no name", address)
				return cty.DynamicVal
			}
			scope := map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
			each[key.AsString()] = m.instance(c, kind, address+"["+key.AsString()+"]", b, scope)
		}
		return cty.ObjectVal(each)
	}
	if a, ok := b.Body.Attributes["count"]; ok {
		number := m.evaluate(a.Expr, nil)
		if !number.IsKnown() || number.Type() != cty.Number {
			m.r.problem(b.DefRange().Filename, "%s has a count that is no number", address)
			return cty.DynamicVal
		}
		n, _ := number.AsBigFloat().Int64()
		var all []cty.Value
		for i := range n {
			all = append(all, m.instance(c, kind, fmt.Sprintf("%s[%d]", address, i), b, nil))
		}
		return cty.TupleVal(all)
	}
	return m.instance(c, kind, address, b, nil)
}

func (m *module) dependsOn(b *hclsyntax.Block, a *hclsyntax.Attribute) {
	list, ok := a.Expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		m.r.problem(b.DefRange().Filename, "depends_on is no list")
		return
	}
	for _, e := range list.Exprs {
		for _, traversal := range e.Variables() {
			m.refer(traversal)
		}
	}
}

// instance decodes a block into the object of the API, and returns its attributes with those that the cloud adds.
func (m *module) instance(c contract, kind, address string, b *hclsyntax.Block, scope map[string]cty.Value) cty.Value {
	made := instance{address: address, kind: kind, values: map[string]cty.Value{}}
	for name, a := range b.Body.Attributes {
		if name != "for_each" && name != "count" && name != "depends_on" {
			made.values[name] = m.evaluate(a.Expr, scope)
		}
	}
	where := b.DefRange().Filename + " " + address
	for _, name := range c.required {
		if _, ok := made.values[name]; !ok {
			m.r.problem(where, "it has no %s", name)
		}
	}
	if c.object != nil {
		made.object = c.object()
		m.fill(where, made.object, b.Body, scope, c)
	} else {
		for name := range made.values {
			if !slices.Contains(c.own, name) {
				m.r.problem(where, "a %s has no %s", kind, name)
			}
		}
		for _, inner := range b.Body.Blocks {
			m.r.problem(where, "a %s has no %s", kind, inner.Type)
		}
	}
	m.made = append(m.made, made)
	all := maps.Clone(made.values)
	for name, computed := range c.computed {
		all[name] = computed(all)
	}
	return cty.ObjectVal(all)
}

// evaluate evaluates an expression; scope has what is local to it, such as each.
func (m *module) evaluate(expr hclsyntax.Expression, scope map[string]cty.Value) cty.Value {
	roots := map[string]map[string]cty.Value{}
	for _, traversal := range expr.Variables() {
		if _, local := scope[traversal.RootName()]; local {
			continue
		}
		root, name, v := m.refer(traversal)
		if root == "" {
			return cty.DynamicVal
		}
		if roots[root] == nil {
			roots[root] = map[string]cty.Value{}
		}
		roots[root][name] = v
	}
	ctx := &hcl.EvalContext{Variables: maps.Clone(scope), Functions: functions}
	if ctx.Variables == nil {
		ctx.Variables = map[string]cty.Value{}
	}
	for root, members := range roots {
		ctx.Variables[root] = cty.ObjectVal(members)
	}
	v, diagnostics := expr.Value(ctx)
	if diagnostics.HasErrors() {
		m.r.problem(expr.Range().Filename, "%s", diagnostics.Error())
		return cty.DynamicVal
	}
	return v
}

// refer resolves the first two parts of a reference; the roots are "" if there is no such thing.
func (m *module) refer(traversal hcl.Traversal) (root, name string, v cty.Value) {
	m.r.count("references")
	root = traversal.RootName()
	if len(traversal) > 1 {
		if step, ok := traversal[1].(hcl.TraverseAttr); ok {
			name = step.Name
		}
	}
	var found bool
	switch root {
	case "var":
		_, found = m.variables[name]
	case "local":
		_, found = m.locals[name]
	default:
		_, found = m.resources[root][name]
	}
	if !found {
		m.r.problem(traversal.SourceRange().Filename, "there is no %s.%s", root, name)
		return "", "", cty.DynamicVal
	}
	m.used[root+"."+name] = true
	return root, name, m.value(root + "." + name)
}

// functions are the Terraform functions that the module uses.
var functions = map[string]function.Function{
	"can":        tryfunc.CanFunc,
	"floor":      stdlib.FloorFunc,
	"lower":      stdlib.LowerFunc,
	"merge":      stdlib.MergeFunc,
	"regex":      stdlib.RegexFunc,
	"replace":    stdlib.ReplaceFunc,
	"toset":      stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),
	"tostring":   stdlib.MakeToFunc(cty.String),
	"trimsuffix": stdlib.TrimSuffixFunc,
	"alltrue": function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				if _, v := it.Element(); v.False() {
					return cty.False, nil
				}
			}
			return cty.True, nil
		},
	}),
}
