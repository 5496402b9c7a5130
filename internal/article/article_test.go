package article_test

import (
	"io"
	"reflect"
	"testing"

	"eventsv2/internal/article"
)

func TestWordsHaveTheirArticles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		word any
		want string
	}{
		{"object", "an object"}, {"array", "an array"}, {"string", "a string"}, {"number -1", "a number -1"}, {"", "a "},
		{reflect.TypeFor[int](), "an int"}, {reflect.TypeFor[uint8](), "a uint8"}, {reflect.TypeFor[[]int](), "a []int"}, {reflect.TypeFor[*int](), "a *int"},
		{reflect.TypeFor[error](), "an error"}, {reflect.TypeFor[any](), "an interface {}"}, {reflect.TypeFor[io.Reader](), "an io.Reader"}, {reflect.UnsafePointer, "an unsafe.Pointer"},
	} {
		if got := article.With(test.word); got != test.want {
			t.Errorf("%v is %s, want %s", test.word, got, test.want)
		}
	}
}
