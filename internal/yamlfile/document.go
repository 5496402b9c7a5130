package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Report records one mistake: its line, counted from 1, and what is wrong.
type Report func(line int, format string, args ...any)

// Source is a text and its description in messages.
type Source struct {
	// Data is the text, of at most MaxBytes.
	Data     []byte
	MaxBytes int
	// Empty is the advice for a text without a document, and Second that for a text
	// with more than one.
	Empty, Second string
}

// Document returns the root of the only YAML document of a source. If there is none
// it reports why and returns nil.
func Document(source Source, report Report) *yaml.Node {
	data := source.Data
	if len(data) > source.MaxBytes {
		report(1, "the file is %d bytes long: the limit is %d", len(data), source.MaxBytes)
		return nil
	}
	if !plainText(data, report) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	err := decoder.Decode(&root)
	switch {
	case errors.Is(err, io.EOF):
		report(1, "the file is empty: %s", source.Empty)
		return nil
	case err != nil:
		notYAML(data, err, report)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		report(second.Line, "a second document begins here: %s", source.Second)
	case !errors.Is(err, io.EOF):
		notYAML(data, err, report)
	}
	content := root.Content[0]
	if IsNull(content) {
		report(1, "the file is empty: %s", source.Empty)
		return nil
	}
	return content
}

// plainText refuses data that is not text, for which the YAML library gives no line.
func plainText(data []byte, report Report) bool {
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			report(line, "the file is not UTF-8 here: save it in that encoding")
			return false
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7F:
			report(line, "the control character %U is here: remove it", r)
			return false
		}
		rest = rest[size:]
	}
	return true
}

// notYAML reports a syntax error.
func notYAML(data []byte, err error, report Report) {
	hint, text := splitLine(err)
	report(errorLine(data, hint, text), "not YAML: %s", text)
}

// linePrefix is how the YAML library writes a line into a message; its errors
// have no other form.
var linePrefix = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// splitLine takes the line, or 0, out of an error of the YAML library.
func splitLine(err error) (line int, text string) {
	text = err.Error()
	found := linePrefix.FindStringSubmatch(text)
	if found == nil {
		return 0, text
	}
	if found[1] != "" {
		// Anything but a number is 0: no hint.
		line, _ = strconv.Atoi(found[1])
	}
	return line, strings.TrimPrefix(text, found[0])
}

// errorLine finds the line of a syntax error. The library names the line where the
// broken construct begins, sometimes one line off, or none. The mistake is in the
// first line with which the text so far has the same error.
func errorLine(data []byte, hint int, text string) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	before, broken := min(max(hint-1, 0), len(lines)-1), len(lines)
	for before+1 < broken {
		middle := (before + broken) / 2
		if syntaxError(bytes.Join(lines[:middle], nil)) == text {
			broken = middle
		} else {
			before = middle
		}
	}
	if broken == len(lines) && len(lines[broken-1]) == 0 && broken > 1 {
		return broken - 1 // the end of the file, after its last line
	}
	return broken
}

// syntaxError is the library's error about data, without the line.
func syntaxError(data []byte) string {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			_, text := splitLine(err)
			return text
		}
	}
}
