// Package programs runs the programs of this repository as they are deployed: it builds
// them, gives them an environment in which nothing but the caller configures them, starts
// them as processes, reads what they log, and ends them.
//
// # Guarantees
//
// A process ends with the one that started it, however that ends, kill -9 included, and
// also while it is stopped by SIGSTOP. A signal never reaches another process that has got
// the number of one that is gone.
//
// # Failure handling
//
// What cannot be built or started is an error that names it, and nothing of it is left
// running. A process that ends by itself has its last words in the error.
package programs
