package setup_test

import (
	"strings"
	"testing"

	"eventsv2/internal/setup"
)

func TestMisspelledVariablesAreRefused(t *testing.T) {
	t.Parallel()
	for name, meant := range map[string]string{
		"WORKER_CONCURENCY":           "WORKER_CONCURRENCY",
		"WORKER_CONCURRENYC":          "WORKER_CONCURRENCY",
		"WOKER_CONCURRENCY":           "WORKER_CONCURRENCY",
		"WORKERS_CONCURRENCY":         "WORKER_CONCURRENCY",
		"worker_concurrency":          "WORKER_CONCURRENCY",
		"EVENTSV2_WORKER_CONCURRENCY": "WORKER_CONCURRENCY",
		"EVENTSV2_WORKER_CONCURENCY":  "WORKER_CONCURRENCY",
		"EVENTS_V2_PUBSUB_PROJECT_ID": "PUBSUB_PROJECT_ID",
		"HANDLER_FILE":                "HANDLERS_FILE",
		"WORKER_MAX_EVENT":            "WORKER_MAX_EVENTS",
		"DATABASE_MAX_CONN":           "DATABASE_MAX_CONNS",
		"RELAY_LOST_ATFER":            "RELAY_LOST_AFTER",
		"HISTORY_COMPLETE_FOR":        "HISTORY_COMPLETED_FOR",
		"RETAIN_HISTROY":              "RETAIN_HISTORY",
		"PUBSUB_SUBSCRIPTIONN":        "PUBSUB_SUBSCRIPTION",
		"LOCK_TIMEUOT":                "LOCK_TIMEOUT",
		"NOTIFER":                     "NOTIFIER",
		"LOG_LEVELL":                  "LOG_LEVEL",
		"DATABASSE_URL":               "DATABASE_URL",
	} {
		_, err := setup.Load(map[string]string{"DATABASE_URL": "x", name: "1"})
		if err == nil || !strings.Contains(err.Error(), name+" is set") || !strings.Contains(err.Error(), "did you mean "+meant+"?") {
			t.Errorf("%s: the error is %v, want one that asks for %s", name, err, meant)
		}
	}
}

// TestForeignVariablesAreLeftAlone has those of platforms, of other programs, and secrets.
func TestForeignVariablesAreLeftAlone(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"DATABASE_URL": "x"}
	for _, name := range []string{
		"PATH", "HOME", "HOST", "HOSTNAME", "USER", "SHELL", "PWD", "TZ", "LANG", "TERM",
		"K_SERVICE", "K_REVISION", "K_CONFIGURATION", "CLOUD_RUN_JOB", "CLOUD_RUN_TASK_INDEX",
		"KUBERNETES_PORT", "KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT_443_TCP_ADDR",
		"WORKER_PORT", "WORKER_SERVICE_HOST", "WORKER_PORT_8080_TCP", "RELAY_SERVICE_PORT_HTTP", "DASHBOARD_PORT", "DASHBOARD_SERVICE_HOST",
		"EVENTSV2_SERVICE_HOST", "EVENTSV2_PORT", "EVENTS_V2_PORT_80_TCP_PROTO", "EVENTSV2_PORT_80_TCP",
		"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGOPTIONS", "POSTGRES_URL", "POSTGRES_PASSWORD",
		"DATABASE_URI", "DATABASE_URLS", "DATABASE_URL2", "DATABASE_URL_2", "DATABASE_DSN", "DATABASE_HOST", "DATABASE_NAME", "DATABASE_PASSWORD", "DATABASE_READ_URL", "database_url", "port",
		"LOGLEVEL", "LOG_LEVELS", "LOG_FILE", "LOG_DIR", "LOG_FORMATTER", "RUST_LOG", "DEBUG",
		"PUBSUB_TOPICS", "PUBSUB_TOPIC_ID", "PUBSUB_PROJECT", "PUBSUB_VERIFICATION_TOKEN", "PUBSUB_EMULATOR_PORT",
		"GOOGLE_CLOUD_PROJECTS", "GOOGLE_CLOUD_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "GCLOUD_PROJECT", "GCP_PROJECT",
		"WORKER_PROCESSES", "WORKER_CLASS", "WORKER_ID", "WORKER_COUNT", "WORKER_TIMEOUT", "WEB_CONCURRENCY", "MAX_WORKERS", "MAX_RELAY", "MIN_DELAY", "MAX_RETRIES",
		"DELAY_INTERVAL", "CLOCK_TIMEOUT", "HTTP_TIMEOUT", "REQUEST_TIMEOUT", "NOTIFY", "NOTIFIERS", "NOTIFY_SOCKET", "DASHBOARDS", "ACCESS_TOKEN", "ACCESS_KEY",
		"OTEL_SERVICE_NAME", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "GOMEMLIMIT", "GOMAXPROCS", "HTTP_PROXY", "http_proxy", "NO_PROXY",
		"GITHUB_SECRET", "STRIPE_SECRET", "EVENTSV2_WEBHOOK_SECRET", "EVENTSV2_HANDLERS_FILE", "EVENTSV2_WORKER_PORT", "EVENTSV2_POSTGRES_PORT", "EVENTSV2_IMAGE",
		"CLOUDSQL_INSTANCES", "CLOUDSQL_USER", "INSTANCE_CONNECTION_NAME", "REDIS_URL", "AWS_REGION", "SENTRY_DSN", "",
	} {
		if _, is := environment[name]; !is {
			environment[name] = "1"
		}
	}
	if _, err := setup.Load(environment); err != nil {
		t.Error(err)
	}
}
