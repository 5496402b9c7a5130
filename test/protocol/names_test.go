package protocol

import "eventsv2/test/rig"

// The tenant and the handler of most tests.
var canvas, key = rig.Canvas, rig.Key
