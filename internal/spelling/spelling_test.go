package spelling_test

import (
	"testing"

	"eventsv2/internal/spelling"
)

func TestNear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, meant string
		mistakes    int
		near        bool
	}{
		{"order_placed", "order_placed", 0, true},
		{"order_placd", "order_placed", 1, true},
		{"Order_Placed", "order_placed", 0, true},
		{"oredr_placed", "order_placed", 1, true},
		{"oredr_plced", "order_placed", 2, true},
		{"orders_plqce", "order_placed", 3, true},
		{"order_shipped", "order_placed", 0, false},
		{"mial", "mail", 1, true},
		{"main", "mail", 1, true},
		{"mane", "mail", 2, false},
		{"eur", "usd", 0, false},
		{"_", "eur", 0, false},
		{"EUR", "eur", 0, true},
		{"", "mail", 0, false},
		{"mail", "", 0, false},
		{"bücher", "bücher_", 1, true},
	} {
		mistakes, near := spelling.Near(c.name, c.meant)
		if near != c.near || near && mistakes != c.mistakes {
			t.Errorf("%q for %q: %d mistakes, near: %t", c.name, c.meant, mistakes, near)
		}
	}
}
