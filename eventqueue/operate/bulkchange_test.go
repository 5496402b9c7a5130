package operate

import (
	"encoding/json"
	"reflect"
	"testing"
)

// A program of a version before groups of errors cannot read an operation on one, which to it would be one on all failed
// events of the handler; and reads every other.
func TestOperationOnAGroupIsUnreadableToVersionsWithoutGroups(t *testing.T) {
	t.Parallel()
	for group, part := range map[string]string{"": "closed", "closed #": "", "no #": "part"} {
		change := Change{Verb: VerbRetry, Filter: EventFilter{Module: "WORKER", Name: "pay", Error: part, ErrorGroup: group, State: StateFailed}}
		text, err := json.Marshal(documentOf(change))
		if err != nil {
			t.Fatal(err)
		}
		var before struct{ Filter struct{ Error string } }
		if err := json.Unmarshal(text, &before); (err != nil) != (group != "") {
			t.Errorf("the version before reads %s as %+v, %v", text, before, err)
		}
		var d document
		if err := json.Unmarshal(text, &d); err != nil || !reflect.DeepEqual(d.change(), change) {
			t.Errorf("%s is read as %+v, %v, want %+v", text, d.change(), err, change)
		}
	}
}
