package pubsubsource

import "time"

// SetLease has messages come again after so long when nobody acknowledges them.
func SetLease(s *Source, lease time.Duration) { s.lease = lease }
