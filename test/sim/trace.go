package sim

import "fmt"

// Part tells where two traces part, and "" when they are the same.
func Part(first, second []string) string {
	for i := range max(len(first), len(second)) {
		if a, b := line(first, i), line(second, i); a != b {
			return fmt.Sprintf("they part at line %d:\n    %s\n    %s", i+1, a, b)
		}
	}
	return ""
}

func line(trace []string, i int) string {
	if i < len(trace) {
		return trace[i]
	}
	return "(the end)"
}
