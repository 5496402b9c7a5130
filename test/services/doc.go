// Package services finds or starts the two services that the event queue runs
// on, Postgres and the official Pub/Sub emulator, for tests and for the demo.
//
// # Where they come from
//
// The first that is there is taken:
//
//   - the one that the environment names (DATABASE_URL, PUBSUB_EMULATOR_HOST);
//   - binaries on the machine, started by this package on a free port of the
//     loopback interface with their files in a fresh temporary directory, which is in
//     memory where that is asked for (InMemory) and there is plenty of it;
//   - a container, through testcontainers-go, when a Docker daemon answers. The
//     images come from POSTGRES_IMAGE and PUBSUB_EMULATOR_IMAGE, or are the
//     official ones. A binary built with the tag nodocker cannot do that: it links
//     no Docker client, which would be a third of what is compiled for most tests.
//
// When there is none, the error says what was looked for and what to install,
// and errors.Is(err, ErrNotFound) holds. One that is there and does not work is
// an error, never a reason to take the next.
//
// # Guarantees
//
// A service that is returned has answered. It lives until Stop. One that was
// started from binaries ends together with the process that started it, however
// that process ends, kill -9 included: a shell that holds a pipe from it kills
// the server and removes the directory as soon as the pipe closes. Containers are
// removed by the reaper of testcontainers-go in the same case, unless the
// environment has disabled it.
//
// Postgres refuses to run as root, so root starts it as the user postgres, or as
// nobody where there is no such user. Its superuser has a random password.
//
// # Failures
//
// A port that is taken between its choice and its use costs another
// attempt on another port. A server that does not come up is an error that ends
// with the last lines of its log; nothing of it is left behind.
package services
