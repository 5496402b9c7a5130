package program

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/buildinfo"
	"eventsv2/internal/cause"
	"eventsv2/otelevents"
	"eventsv2/service"
)

// telemetry reports to a monitoring system.
type telemetry struct {
	stops   []func(context.Context) error
	metrics *otelevents.Metrics // nil: none are reported
	handler http.Handler        // of /metrics; nil: not served
	traces  *otelevents.Traces  // nil: none are reported
}

// exports reports whether an environment says where a signal goes: METRICS or TRACES.
func exports(environment map[string]string, signal string) bool {
	exporter := environment["OTEL_"+signal+"_EXPORTER"]
	switch {
	case environment["OTEL_SDK_DISABLED"] == "true":
		return false
	case exporter != "":
		return exporter != "none"
	default:
		return environment["OTEL_EXPORTER_OTLP_ENDPOINT"] != "" || environment["OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"] != ""
	}
}

// newTelemetry makes what an environment says, for the program of this name. Without variables that name an exporter it
// returns nil, so that nothing is measured. The libraries of OpenTelemetry read the further variables OTEL_… from the process's environment.
func newTelemetry(ctx context.Context, environment map[string]string, program string, log *zap.Logger) (*telemetry, error) {
	metrics, traces := exports(environment, "METRICS"), exports(environment, "TRACES")
	if !metrics && !traces {
		return nil, nil
	}
	handleErrors(log)
	described, err := describe(ctx, program)
	if err != nil {
		return nil, fmt.Errorf("read OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &telemetry{}
	if metrics {
		err = t.makeMetrics(ctx, environment, described)
	}
	if traces && err == nil {
		err = t.makeTraces(ctx, described)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *telemetry) makeMetrics(ctx context.Context, environment map[string]string, described *resource.Resource) error {
	reader, err := t.newReader(ctx, environment)
	if err != nil {
		return fmt.Errorf("make the exporter of metrics (OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_…): %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(described))
	t.stops = append(t.stops, provider.Shutdown)
	t.metrics, err = otelevents.New(provider)
	return err
}

func (t *telemetry) makeTraces(ctx context.Context, described *resource.Resource) error {
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("make the exporter of traces (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_…): %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	t.stops = append(t.stops, provider.Shutdown)
	t.traces = otelevents.NewTraces(provider)
	return nil
}

// newReader makes the reader of the exporter. What Prometheus scrapes is served on PORT, beside the health
// endpoints; the library would open a port of its own for it.
func (t *telemetry) newReader(ctx context.Context, environment map[string]string) (sdkmetric.Reader, error) {
	if environment["OTEL_METRICS_EXPORTER"] != "prometheus" {
		return autoexport.NewMetricReader(ctx)
	}
	registry := prometheus.NewRegistry()
	t.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return prometheusexporter.New(prometheusexporter.WithRegisterer(registry), prometheusexporter.WithoutScopeInfo())
}

// describe is the resource that all metrics have; the variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
// come before the program's name and version.
func describe(ctx context.Context, program string) (*resource.Resource, error) {
	return resource.New(ctx, resource.WithAttributes(attribute.String("service.name", program), attribute.String("service.version", buildinfo.Version())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
}

// handleErrors has what the exporters cannot do be warnings of the log, each cause once in a while.
func handleErrors(log *zap.Logger) {
	failures := make(chan *cause.Log, 1)
	failures <- &cause.Log{}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		causes := <-failures
		defer func() { failures <- causes }()
		if causes.Worth(err, false) {
			log.Warn("could not report metrics or traces; events run all the same", zap.Error(err))
		}
	}))
}

// stopTakes bounds the last report of a program.
const stopTakes = time.Second

// runReporting is service.Run for a program that reports what the environment says.
func runReporting(ctx context.Context, environment map[string]string, config service.Config, register func(*service.Service) error) error {
	t, err := newTelemetry(ctx, environment, config.Name, config.Logger)
	if err != nil {
		return err
	}
	if t == nil {
		return service.Run(ctx, config, register)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTakes)
		defer cancel()
		for _, stop := range t.stops {
			if err := stop(ctx); err != nil { // a program whose events have run has not failed
				config.Logger.Warn("could not report the last metrics and traces", zap.Error(err))
			}
		}
	}()
	if t.traces != nil {
		config.Worker.Middleware = append(config.Worker.Middleware, t.traces.Middleware)
	}
	if t.metrics == nil {
		return service.Run(ctx, config, register)
	}
	config.Observer, config.Metrics = t.metrics, t.handler
	return service.Run(ctx, config, func(s *service.Service) error {
		if err := t.observe(s, !config.NoRelay); err != nil {
			return err
		}
		return register(s)
	})
}

// observe has the connections and slots of a Service observed, and in a program that runs the relay what is pending, while
// there are connections.
func (t *telemetry) observe(s *service.Service, relays bool) error {
	if _, err := t.metrics.ObservePool(s.Pool()); err != nil {
		return err
	}
	if _, err := t.metrics.ObserveSlots(s.Slots); err != nil || !relays {
		return err
	}
	s.AddPart("telemetry", func(ctx context.Context) error {
		stop, err := t.metrics.ObservePending(inspect.NewIn(s.Store().Schema(), s.Pool()))
		if err != nil {
			return err
		}
		<-ctx.Done()
		return stop()
	})
	return nil
}
