// Package telemetry makes the providers of OpenTelemetry for the programs in cmd/, as the variables OTEL_… say. A
// program that embeds the queue makes its own, and uses package otelevents.
package telemetry
