package growth

import "fmt"

// unit is how a kind of measure is written.
type unit int

const (
	pieces unit = iota
	inBytes
)

// format writes a value for people.
func (u unit) format(v float64) string {
	if u == inBytes {
		return fmt.Sprintf("%.2f MiB", v/mebibyte)
	}
	return fmt.Sprintf("%.0f", v)
}

const mebibyte = 1 << 20

// kind is a kind of measure, with what it may rise by between the second and the
// last quarter of a run without being taken for growth: the larger of an absolute
// and a relative allowance.
type kind struct {
	name     string
	unit     unit
	absolute float64
	relative float64
}

// The allowances are about twice the noise of a run without any leak.
var (
	memory     = kind{"memory", inBytes, 4 * mebibyte, 0.15}
	heap       = kind{"heap", inBytes, 1 * mebibyte, 0.15}
	goroutines = kind{"goroutines", pieces, 8, 0.10}
	files      = kind{"fds", pieces, 6, 0.10}
	rows       = kind{"rows", pieces, 500, 0.25}
	tableSize  = kind{"table", inBytes, 2 * mebibyte, 0.25}
	indexSize  = kind{"indexes", inBytes, 2 * mebibyte, 0.25}
	backends   = kind{"backends", pieces, 6, 0.10}
)

// measure is one thing that is measured: a kind, of a process or table.
type measure struct {
	kind kind
	of   string
}

// String is the measure in the verdict, such as goroutines(library).
func (m measure) String() string {
	if m.of == "" {
		return m.kind.name
	}
	return m.kind.name + "(" + m.of + ")"
}
