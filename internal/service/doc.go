// Package service is what the programs in cmd/ share: the configuration, read
// from the environment in this one place; the logger; the connections; and the
// health endpoints. It wires the other packages and holds no rule of the queue.
//
// Everything that can be wrong with the configuration or with what it points to
// is found when a program starts, and the error says what to change.
package service
