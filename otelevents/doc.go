// Package otelevents counts what a program does with events, in instruments of OpenTelemetry, and records runs as
// spans. It uses the API
// only: which provider there is, and where the numbers go, is the program's.
//
//	metrics, err := otelevents.New(provider)
//	config.Observer = metrics // of a service.Config
//	config.Worker.Middleware = append(config.Worker.Middleware, otelevents.NewTraces(tracerProvider).Middleware)
//
// docs/telemetry.md lists the instruments. None of their attributes is a canvas or comes from a value, and all
// together have at most 500 series.
package otelevents
