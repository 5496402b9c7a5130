// Package pubsubproxy is a proxy between programs and Pub/Sub that can make single methods
// fail: because of a revoked right, an exhausted quota, a call that hangs, or an answer that
// is lost. Programs use it in place of an emulator; it passes all other calls on to one.
package pubsubproxy
