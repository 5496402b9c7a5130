package deploy_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the dashboards in deploy/dashboards")

const dashboards = root + "/deploy/dashboards/"

// panel is one of deploy/dashboards/panels.yaml.
type panel struct {
	Title, About, Unit string
	Queries            []struct {
		Expr, Name string
		Legend     []string
	}
}

// legend is the text of a legend; label makes one of a label's name.
func legend(name string, labels []string, label func(string) string) string {
	var parts []string
	if name != "" {
		parts = append(parts, name)
	}
	for _, l := range labels {
		parts = append(parts, label(l))
	}
	return strings.Join(parts, " ")
}

// object is one of JSON, whose fields are written in the order of their names.
type object = map[string]any

// grafana makes a dashboard of Grafana, whose schema is https://grafana.com/docs/grafana/latest/dashboards/.
func grafana(panels []panel) object {
	units := map[string]string{"s": "s", "ops": "ops", "events": "short", "connections": "short", "slots": "short", "percent": "percentunit"}
	datasource := object{"type": "prometheus", "uid": "${datasource}"}
	var drawn []object
	for i, p := range panels {
		var targets []object
		for j, q := range p.Queries {
			targets = append(targets, object{"refId": string(rune('A' + j)), "datasource": datasource, "expr": q.Expr,
				"legendFormat": legend(q.Name, q.Legend, func(l string) string { return "{{" + l + "}}" })})
		}
		drawn = append(drawn, object{"id": i + 1, "type": "timeseries", "title": p.Title, "description": p.About, "datasource": datasource,
			"gridPos": object{"x": 12 * (i % 2), "y": 8 * (i / 2), "w": 12, "h": 8}, "targets": targets,
			"fieldConfig": object{"defaults": object{"unit": units[p.Unit], "min": 0}, "overrides": []object{}}})
	}
	return object{"title": "Events V2", "uid": "eventsv2", "tags": []string{"eventsv2"}, "schemaVersion": 39, "editable": true, "refresh": "1m",
		"time":       object{"from": "now-6h", "to": "now"},
		"templating": object{"list": []object{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}},
		"panels":     drawn}
}

// cloudMonitoring makes a dashboard of Google Cloud Monitoring, for metrics that Managed Service for Prometheus has collected.
// test/deploycheck holds it to the API's types.
func cloudMonitoring(panels []panel) object {
	units := map[string]string{"s": "s", "ops": "1/s", "events": "1", "connections": "1", "slots": "1", "percent": "10^2.%"}
	var tiles []object
	for i, p := range panels {
		var sets []object
		for _, q := range p.Queries {
			sets = append(sets, object{"plotType": "LINE", "legendTemplate": legend(q.Name, q.Legend, func(l string) string { return "${labels." + l + "}" }),
				"timeSeriesQuery": object{"prometheusQuery": q.Expr, "unitOverride": units[p.Unit]}})
		}
		tiles = append(tiles, object{"xPos": 24 * (i % 2), "yPos": 16 * (i / 2), "width": 24, "height": 16,
			"widget": object{"title": p.Title, "xyChart": object{"dataSets": sets, "yAxis": object{"scale": "LINEAR"}}}})
	}
	return object{"displayName": "Events V2", "mosaicLayout": object{"columns": 48, "tiles": tiles}}
}

// TestDashboardsMatchThePanels: both files are generated from panels.yaml; -update writes them. That each query
// returns data is tested on what the programs report (test/e2e).
func TestDashboardsMatchThePanels(t *testing.T) {
	t.Parallel()
	var panels []panel
	decoder := yaml.NewDecoder(strings.NewReader(read(t, dashboards+"panels.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&panels); err != nil {
		t.Fatal(err)
	}
	for _, p := range panels {
		if p.Title == "" || p.About == "" || p.Unit == "" || len(p.Queries) == 0 {
			t.Errorf("a panel lacks something: %+v", p)
		}
		for _, q := range p.Queries {
			if q.Expr == "" || q.Name == "" && len(q.Legend) == 0 {
				t.Errorf("a query of %s lacks something: %+v", p.Title, q)
			}
		}
	}
	for name, dashboard := range map[string]object{"grafana.json": grafana(panels), "cloud-monitoring.json": cloudMonitoring(panels)} {
		want, err := json.MarshalIndent(dashboard, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		if *update {
			if err := os.WriteFile(dashboards+name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if read(t, dashboards+name) != string(want) {
			t.Errorf("deploy/dashboards/%s is not what panels.yaml says: run go test ./test/deploy -run Dashboards -update", name)
		}
	}
}

// TestDashboardsUseExistingMetrics, and for all of them.
func TestDashboardsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	text := read(t, dashboards+"panels.yaml")
	for _, name := range metrics(t) {
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "_seconds"), "_total"); !strings.Contains(text, base) && !elsewhere[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
	documented := map[string]bool{}
	for _, name := range metrics(t) {
		documented[name], documented[name+"_bucket"] = true, true
	}
	for _, name := range metricName.FindAllString(text, -1) {
		if !documented[name] {
			t.Errorf("a panel asks for %s, which docs/telemetry.md does not list", name)
		}
	}
}

// elsewhere are metrics that no panel needs, since another says the same.
var elsewhere = map[string]bool{
	"eventsv2_events_claimed_total":         true, // runs are shown
	"eventsv2_pool_waits_total":             true, // an alert asks for the time
	"eventsv2_pool_wait_time_seconds_total": true,
}
