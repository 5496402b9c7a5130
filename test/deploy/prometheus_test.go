package deploy_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"eventsv2/test/testenv"
)

// TestPrometheusScrapesWhatComposeStarts, and evaluates the alerts: deploy/ is mounted beside its configuration.
func TestPrometheusScrapesWhatComposeStarts(t *testing.T) {
	t.Parallel()
	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, root+"/deploy/prometheus.yml")), &prometheus); err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Volumes     []string
			Profiles    []string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, root+"/docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, job := range prometheus.ScrapeConfigs {
		for _, static := range job.StaticConfigs {
			for _, target := range static.Targets {
				targets++
				service, port, _ := strings.Cut(target, ":")
				if port != "8080" || compose.Services[service].Environment["OTEL_METRICS_EXPORTER"] != "prometheus" {
					t.Errorf("it scrapes %s, which docker-compose.yml does not start with metrics on that port", target)
				}
			}
		}
	}
	if targets != 2 || !slices.Equal(prometheus.RuleFiles, []string{"alerts/eventsv2.yaml"}) {
		t.Errorf("it scrapes %d targets, and evaluates %q", targets, prometheus.RuleFiles)
	}
	if mounted := compose.Services["prometheus"].Volumes; !slices.Equal(mounted, []string{"./deploy:/etc/prometheus:ro"}) {
		t.Errorf("the container of Prometheus has %q", mounted)
	}
	for _, service := range []string{"prometheus", "dashboard", "access"} {
		if started, is := compose.Services[service]; !is || started.Profiles != nil {
			t.Errorf("%s is not started by docker-compose up: %+v", service, started)
		}
	}
	promtool := testenv.Program(t, "prometheus", "promtool")
	check := exec.CommandContext(t.Context(), promtool, "check", "config", "prometheus.yml")
	check.Dir = root + "/deploy"
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check config: %v\n%s", err, out)
	}
}
