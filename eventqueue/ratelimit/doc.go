// Package ratelimit is the arithmetic of rate limits: how much room is left in the windows of a
// limit, and how long events wait that find none. It is pure: no I/O, and no clock but the
// database's time in its arguments. Package control sets the limits; package worker enforces them
// before it runs an event (ratestage.go).
package ratelimit
