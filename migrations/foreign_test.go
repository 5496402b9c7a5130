package migrations

import (
	"slices"
	"testing"
)

// TestNamesFromListsTheObjectsOfEachVersion, also when a migration makes a function with other arguments, renames a table, or brings
// back a name that an earlier one has taken.
func TestNamesFromListsTheObjectsOfEachVersion(t *testing.T) {
	t.Parallel()
	changes := nameChanges(`1 + function emit(int4)
1 + table old
2 + function emit(int4, text)
2 + table new
2 - function emit(int4)
2 - table old
3 + table old
`)
	for _, c := range []struct {
		version  int64
		wanted   []string
		inTheWay []string // of the names below
	}{
		{1, []string{"emit(int4)", "old", "emit(int4, text)", "new"}, []string{"emit(int4)", "emit(bool)", "old", "new"}},
		{2, []string{"emit(int4, text)", "new"}, []string{"emit(bool)", "new"}},
		{3, []string{"old"}, []string{"old"}},
		{4, nil, nil},
	} {
		ours, wanted := namesFrom(changes, c.version)
		if !slices.Equal(wanted, c.wanted) {
			t.Errorf("from version %d on the names are %q, want %q", c.version, wanted, c.wanted)
		}
		var got []string
		for _, name := range []string{"emit(int4)", "emit(bool)", "old", "new", "new(int4)", "mine"} {
			if inTheWay(ours, wanted)(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, c.inTheWay) {
			t.Errorf("in the way of version %d are %q, want %q", c.version, got, c.inTheWay)
		}
	}
}
