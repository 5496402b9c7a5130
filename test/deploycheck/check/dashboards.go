package check

import (
	"encoding/json"
	"strings"

	monitoring "google.golang.org/api/monitoring/v1"
)

// dashboards checks that the dashboard for Cloud Monitoring is one for its API: that of Grafana has no types that
// could be had, and its queries are tested on what the programs report.
func dashboards(r *Report, t tree) {
	const name = "deploy/dashboards/cloud-monitoring.json"
	r.count("files")
	decoder := json.NewDecoder(strings.NewReader(t.read(r, name)))
	decoder.DisallowUnknownFields()
	var dashboard monitoring.Dashboard
	switch err := decoder.Decode(&dashboard); {
	case err != nil:
		r.problem(name, "it is no Dashboard of monitoring/v1: %v", err)
	case dashboard.DisplayName == "" || dashboard.MosaicLayout == nil || len(dashboard.MosaicLayout.Tiles) == 0:
		r.problem(name, "it has no name, or nothing in it")
	default:
		for _, tile := range dashboard.MosaicLayout.Tiles {
			if tile.Widget == nil || tile.Widget.XyChart == nil || len(tile.Widget.XyChart.DataSets) == 0 {
				r.problem(name, "a tile at %d, %d has no chart", tile.XPos, tile.YPos)
			}
		}
	}
}
