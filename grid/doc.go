// Package grid runs grids: a canvas' YAML definition of named actions, each of
// which takes its inputs from other actions, from literals or from the event
// that starts the grid.
//
// # Parts
//
//   - [Actions] are the Go functions that definitions may use; [Register] adds one,
//     and its types say which inputs, params and services it needs and what it
//     puts out.
//   - [Parse] and [Load] read a definition and check it against them and against
//     the [Services] there are. A [Grid] that they return can run.
//   - [NewInput] and [Grid.NewInput] make the event that starts a run.
//   - [Runner] runs grids: each is an ordinary handler of the queue, and a run is
//     one event.
//   - [Sweeper] removes what runs that failed for good have left.
//
// # Guarantees
//
// A definition that is accepted runs: every action it names exists, every input
// has an origin of its own type, every literal was cast, nothing waits for itself.
// Otherwise all mistakes are reported together, each with its line and path.
//
// In a run every action that can run from the event runs once: those whose
// inputs are there, in the order of their dependencies, independent ones at the
// same time. Its output is kept as JSON in grid_outputs as soon as it has
// finished. An attempt that comes after a failure, a crash or a deploy goes on
// from what is kept, and repeats nothing that has finished. Inputs are always
// read from what is kept, so that the first attempt sees what a later one would.
//
// An action that was under way when its worker died runs again: it had not
// finished. [Call.Key] is the same then, for whoever receives its effects.
//
// An output is written only while its attempt holds the event (I5), in a statement
// that no claim of the event can overlap: two attempts never both finish an
// action, and none overwrites what another has finished. The outputs are removed
// in the transaction that completes the event, so none outlives its run, and none
// is missing while the run goes on.
//
// A run whose definition has changed between two attempts runs those actions
// anew whose definition is another one, or that took, directly or through others,
// from one that is. What is kept of all the others holds. The definition of an
// action is what its output depends on: the Go action with its [Version] and type
// of output, params, names of services, origins and literals; not its own name's
// place in the file, its comments or the order of its keys.
//
// Inputs of one grid instance run one at a time, in the order emitted: they carry
// its id as NewEvent.OrderingKey.
//
// # Failures
//
// An action that fails leaves the others alone: those that do not need it still
// run, and the run is tried again by the handler's policy. One that fails
// permanently ([eventqueue.Permanent]) ends the run: what runs is waited for and
// kept, nothing else starts. If actions only asked to be snoozed, the run is,
// for the shortest of their waits. A panic, [Timeout] and a missing return are
// failures. An output that cannot be encoded or is too large is a permanent one.
// An event that does not fit an input fails the run before any action has run.
// While the database is away, an output waits for it as long as the run may last.
//
// A run that failed for good keeps its outputs for as long as it can be retried:
// retrying it goes on where it stopped. [Sweeper] removes them once its entry in
// event_log is gone.
package grid
