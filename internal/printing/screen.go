package printing

import (
	"bytes"
	"fmt"
	"io"

	"golang.org/x/term"
)

// OnTerminal reports whether results are text on a terminal, which can be drawn anew.
func (p *Printer) OnTerminal() bool { return !p.JSON && isTerminal(p.stdout) }

// Draw replaces what the terminal shows with the text that human writes, as much of it as there is
// room for.
func (p *Printer) Draw(human func(w io.Writer)) error {
	var text bytes.Buffer
	human(&text)
	screen := text.Bytes()
	if file, ok := p.stdout.(interface{ Fd() uintptr }); ok {
		if columns, lines, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 && lines > 0 {
			screen = clip(screen, columns, lines)
		}
	}
	if _, err := p.stdout.Write(append([]byte(ClearScreen), screen...)); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// ClearScreen begins what Draw writes: it moves the cursor to the first line and clears what is below.
const ClearScreen = "\x1b[H\x1b[J"

// clip cuts a text to a size. The last line stays free for the cursor, since the terminal would
// scroll otherwise.
func clip(text []byte, columns, lines int) []byte {
	var clipped bytes.Buffer
	for line := range bytes.Lines(text) {
		if lines--; lines < 1 {
			break
		}
		runes := []rune(string(bytes.TrimSuffix(line, []byte("\n"))))
		clipped.WriteString(string(runes[:min(columns, len(runes))]) + "\n")
	}
	return clipped.Bytes()
}
