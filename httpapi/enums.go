package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"eventsv2/eventqueue/operate"
	"eventsv2/internal/keymode"
	"eventsv2/internal/priority"
)

// Types whose values are listed elsewhere, mostly by package operate, so that the document names those that this program knows.
type (
	ruleType    operate.RuleType
	eventState  operate.EventState
	queuedState operate.EventState
	uniqueMode  string // of package keymode
	priorityOf  string // of package priority
)

// Schema implements huma.SchemaProvider.
func (ruleType) Schema(huma.Registry) *huma.Schema {
	var types []operate.RuleType
	for _, kind := range operate.RuleKinds() {
		types = append(types, kind.Type)
	}
	return oneOf(types)
}

// Schema implements huma.SchemaProvider.
func (eventState) Schema(huma.Registry) *huma.Schema {
	return oneOf(append(operate.QueuedStates(), operate.EndedStates()...))
}

// Schema implements huma.SchemaProvider.
func (queuedState) Schema(huma.Registry) *huma.Schema { return oneOf(operate.QueuedStates()) }

// Schema implements huma.SchemaProvider.
func (uniqueMode) Schema(huma.Registry) *huma.Schema { return oneOf(keymode.Modes()) }

// Schema implements huma.SchemaProvider.
func (priorityOf) Schema(huma.Registry) *huma.Schema { return oneOf(priority.All()) }

func oneOf[T ~string](values []T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// registerEnums has the types of package operate described as those above.
func registerEnums(registry huma.Registry) {
	registry.RegisterTypeAlias(reflect.TypeFor[operate.RuleType](), reflect.TypeFor[ruleType]())
	registry.RegisterTypeAlias(reflect.TypeFor[operate.EventState](), reflect.TypeFor[eventState]())
}
