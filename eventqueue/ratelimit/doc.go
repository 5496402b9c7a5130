// Package ratelimit computes how many events a rate limit still admits in its current windows, and
// how long the other events wait. It is pure: it does no I/O, and its only clock is the database's
// time in its arguments. Package operate sets the limits; package worker enforces them before it
// runs an event (ratestage.go).
package ratelimit
