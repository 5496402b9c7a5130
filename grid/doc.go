// Package grid runs grids. A grid is a YAML definition of named actions. Each action
// takes its inputs from other actions, from literals, or from the event that starts the
// grid.
//
// # Parts
//
//   - [Actions] is the registry of the Go functions that definitions may use. [Register]
//     adds a function; its types specify which inputs, params and services it needs, and
//     what its output is.
//   - [Parse] and [Load] read a definition and check it against these functions and
//     against the [Services]. A [Grid] that they return can run.
//   - [NewInput] and [Grid.NewInput] make the event that starts a run.
//   - [Runner] runs grids: each grid is an ordinary handler of the queue, and a run is
//     one event.
//   - [Sweeper] removes the outputs of runs that failed for good. A service in which grids
//     are registered runs one.
//
// # Guarantees
//
// An accepted definition can run: every action that it names exists, every input has
// an origin of its type, every literal was cast, and there are no cycles. If a
// definition is not accepted, all mistakes are reported together, each with its line and
// path.
//
// In a run, every action whose inputs exist runs once, in the order of the
// dependencies. Independent actions run concurrently. The output of an action is
// saved as JSON in grid_outputs as soon as the action is complete. An attempt after a
// failure, a crash or a deploy continues from the saved outputs, and repeats no
// complete action. Inputs are always read from saved outputs, so that the first
// attempt sees the same values as a later one.
//
// An action that was running when its worker died runs again, since it was not
// complete. [ActionRun.Key] is the same in both calls, so that a receiver of its effects can
// recognise the repeat.
//
// An output is written only while its attempt holds the event (I5), in a statement
// that no claim of the event can overlap: two attempts never both complete an
// action, and none overwrites the output of another. The outputs are deleted
// in the transaction that completes the event, so none outlives its run, and none
// is missing during the run.
//
// If a definition has changed between two attempts, the run repeats the actions
// whose definition has changed, and those that used, directly or through others, the
// output of such an action. The saved outputs of all other actions stay valid. So do those
// of the other definition: while a rolling deployment runs both, each repeats no action that
// is complete by its own. The
// definition of an action is what its output depends on: the Go action with its
// [Version] and type of output, params, names of services, origins and literals. It
// does not include its position in the file, its comments or the order of its keys.
//
// Inputs of one grid instance run one at a time, in the order in which they were
// emitted: the id of the instance is their NewEvent.OrderingKey.
//
// # Failures
//
// If an action fails, the actions that do not need it still run; then the run is
// tried again by the handler's policy. A permanent failure
// ([eventqueue.Permanent]) ends the run: running actions complete and their outputs
// are saved, no other action starts. If actions only asked for a snooze, the run is
// snoozed, for the shortest of their waits. A panic, [Timeout] and a missing return
// are failures. An output that cannot be encoded or is too large is a permanent
// failure. If the event's value does not fit an input, the run fails before any action
// has run. During an outage of the database, saving an output is tried again until the
// database is back or the time of the run is over.
//
// The outputs of a run that failed for good stay for as long as it can be retried; a
// retry continues where it stopped. [Sweeper] removes them once its entry in
// event_log is deleted.
package grid
