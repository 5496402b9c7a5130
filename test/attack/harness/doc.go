// Package harness is what the programs that attack a deployment share: processes
// that cannot outlive the program that started them, and proxies whose
// connections can be cut, slowed down and silenced.
//
// # Guarantees
//
// A process ends with the program that started it, however that ends, kill -9
// included. A fault of a proxy is over when the call that made it has returned.
//
// # Failures
//
// What cannot be started is an error that names it; nothing of it is left
// running.
package harness
