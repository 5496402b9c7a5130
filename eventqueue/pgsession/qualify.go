package pgsession

import "strings"

// SQL returns a statement of this module with its schema: before each relation, type and function of
// the queue, and within literals that are nothing but the name of one, as in 'events_id_seq'. Other literals,
// quoted identifiers, comments and names behind a dot stay. It is for one statement whose
// strings conform to the standard.
func (s Schema) SQL(statement string) string {
	schema := s.Identifier() + "."
	var b strings.Builder
	b.Grow(len(statement) + len(statement)/8)
	for rest, afterDot := statement, false; rest != ""; {
		token := nextToken(rest)
		rest = rest[len(token):]
		switch text, literal := strings.CutPrefix(token, "'"); {
		case literal && isObject(strings.TrimSuffix(text, "'")):
			b.WriteString("'" + strings.ReplaceAll(schema, "'", "''") + text)
		case !literal && !afterDot && isObject(token):
			b.WriteString(schema + token)
		default:
			b.WriteString(token)
		}
		afterDot = token == "."
	}
	return b.String()
}

func isObject(name string) bool {
	_, is := objectSet[name]
	return is
}

var objectSet = func() map[string]struct{} {
	set := make(map[string]struct{}, len(objects))
	for _, name := range objects {
		set[name] = struct{}{}
	}
	return set
}()

// nextToken returns what the text begins with: a literal, a quoted identifier, a comment, a body in
// dollar quotes, a word, or one byte. What is not closed reaches to the end.
func nextToken(text string) string {
	switch c := text[0]; {
	case c == '\'', c == '"':
		return through(text, 1, string(c))
	case strings.HasPrefix(text, "--"):
		return through(text, 2, "\n")
	case strings.HasPrefix(text, "/*"):
		return through(text, 2, "*/")
	case c == '$':
		if tag := dollarTag(text); tag != "" {
			return through(text, len(tag), tag)
		}
	case isWordByte(c):
		end := 1
		for end < len(text) && (isWordByte(text[end]) || text[end] == '$') {
			end++
		}
		return text[:end]
	}
	return text[:1]
}

// through returns the text up to the end of the first closing after the given place. A doubled quote
// ends one literal and begins the next, which changes nothing here.
func through(text string, from int, closing string) string {
	if i := strings.Index(text[from:], closing); i >= 0 {
		return text[:from+i+len(closing)]
	}
	return text
}

// dollarTag returns the $tag$ that the text begins with, or "" for a parameter such as $1.
func dollarTag(text string) string {
	end := 1
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	if end == len(text) || text[end] != '$' || '0' <= text[1] && text[1] <= '9' {
		return ""
	}
	return text[:end+1]
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
