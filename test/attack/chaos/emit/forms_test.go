package emit

import "testing"

func TestFormsShareAllCalls(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, f := range forms() {
		sum += f.share
	}
	if sum != 100 {
		t.Errorf("the shares make %d, want 100", sum)
	}
}
