package trace

// MaxParentBytes is beyond any version of the W3C format, which has 55 bytes
// today.
const MaxParentBytes = 128

// ValidParent reports whether a notifier may carry s as a trace context: printable ASCII of a
// sane length. Its meaning is up to the tracer. One that a notifier would refuse must not cost the
// notification, let alone its batch.
func ValidParent(s string) bool {
	if s == "" || len(s) > MaxParentBytes {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
