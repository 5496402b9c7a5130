// Package harness is what the programs that attack a deployment have for it: the tables of
// their report, servers that can be killed, processes that can be frozen, proxies whose connections
// can be cut, slowed down and silenced, and the waiting for the queue to come to rest. What is a
// program's own is its plan of faults, and the rules by which it decides what was a violation.
//
// # Guarantees
//
// A server ends with the program that started it. A fault of a proxy is over when the call that
// made it has returned.
//
// # Failure handling
//
// What cannot be started is an error that names it; nothing of it is left running.
package harness
