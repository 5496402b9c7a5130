// Package harness is what the programs that attack a deployment share: servers that can be
// killed, proxies whose connections can be cut, slowed down and silenced, and the queue of a
// program that emits.
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
