package machine

import "strings"

// Mermaid renders the diagram. Arrows that are not documented are dotted.
func Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, a := range arrows {
		line := " -->"
		if !a.Documented() {
			line = " -.->"
		}
		b.WriteString("  " + string(a.From) + line)
		if a.Label != Deleted {
			text := string(a.Label)
			if a.Note != "" {
				text += ": " + a.Note
			}
			b.WriteString("|" + text + "|")
		}
		b.WriteString(" " + string(a.To) + "\n")
	}
	return b.String()
}

// Additions lists the arrows that the documented diagram lacks, one a line,
// each with its reason.
func Additions() string {
	var b strings.Builder
	for _, a := range arrows {
		if !a.Documented() {
			b.WriteString("- `" + string(a.From) + " → " + string(a.Label) + " → " + string(a.To) + "`: " + a.Why + ".\n")
		}
	}
	return b.String()
}
