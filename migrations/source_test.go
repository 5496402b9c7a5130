package migrations

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestEmbeddedFilesAreInOrder(t *testing.T) {
	t.Parallel()
	list, err := sources(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 || Latest() != list[len(list)-1].version {
		t.Fatalf("Latest is %d with %d files", Latest(), len(list))
	}
}

// The text of SQL is one transaction, so it cannot hold what refuses to run in
// one, and every migration can be taken back.
func TestEveryMigrationIsTransactionalAndHasBothDirections(t *testing.T) {
	t.Parallel()
	for _, s := range embedded() {
		if strings.Contains(s.text, "NO TRANSACTION") {
			t.Errorf("%s runs outside a transaction: SQL cannot express that", s.name)
		}
		if strings.Count(s.text, markUp) != 1 || strings.Count(s.text, markDown) != 1 {
			t.Errorf("%s must have one %q and one %q", s.name, markUp, markDown)
		}
		if strings.Contains(s.up(), "+goose") || strings.Contains(s.up(), "DROP TABLE") {
			t.Errorf("%s: the text of its way up has an annotation or its way down in it:\n%s", s.name, s.up())
		}
	}
}

func TestInvalidSourcesAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files []string
		want  string
	}{
		"gap":           {[]string{"00001_a.sql", "00003_c.sql"}, `"00003_c.sql" has number 3 where 2 must follow`},
		"duplicate":     {[]string{"00001_a.sql", "00001_b.sql"}, `"00001_b.sql" has number 1 where 2 must follow`},
		"start":         {[]string{"00002_b.sql"}, "where 1 must follow"},
		"not padded":    {[]string{"1_a.sql"}, "must be five digits"},
		"no number":     {[]string{"first_a.sql"}, "must be five digits"},
		"no underscore": {[]string{"00001.sql"}, "must be five digits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for _, file := range test.files {
				files[file] = &fstest.MapFile{}
			}
			_, err := sources(files)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}
