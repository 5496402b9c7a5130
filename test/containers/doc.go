// Package containers holds the tests of what runs in containers: the image of
// the Dockerfile, docker-compose.yml from "up" to "down", the branch of
// test/services that starts Postgres and the Pub/Sub emulator from images, and
// what happens to the events of a worker that a network takes away from Postgres.
//
// # What is needed
//
// A container engine and its command docker; for the compose file docker-compose
// or the plugin. The base images come from POSTGRES_IMAGE,
// PUBSUB_EMULATOR_IMAGE, GO_IMAGE and PROMETHEUS_IMAGE, or else the official ones;
// where the engine cannot pull them, test/images/build.sh makes stand-ins.
//
// # Failures
//
// Without an engine, and where neither an official image nor a stand-in can be
// had, the tests are skipped with a message that begins with "SKIPPED, NOT
// TESTED:" and says why; where CI is set they fail. Everything that a test makes carries a random name and
// is removed at its end, also when it fails; the logs of its containers are
// printed before.
package containers
