package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"eventsv2/test/programs"
	"eventsv2/test/testenv"
)

// prometheus is a real server, which scrapes programs.
type prometheus struct {
	t       *testing.T
	address string
	targets string // the file that lists what is scraped
}

// prometheus starts a server that scrapes programs once a second, and evaluates rules twice as often; "" is none.
// A scrape that took longer, as on a busy machine, would end the series.
func (r *rig) prometheus(rules string, scraped ...*program) *prometheus {
	r.t.Helper()
	binary := testenv.Program(r.t, "prometheus", "prometheus")
	directory := r.t.TempDir()
	p := &prometheus{t: r.t, targets: filepath.Join(directory, "targets.json")}
	p.scrape(scraped...)
	file := filepath.Join(directory, "prometheus.yml")
	config := fmt.Sprintf(`{
		global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}, rule_files: [rules-*.yaml],
		scrape_configs: [{job_name: eventsv2, file_sd_configs: [{files: [%q], refresh_interval: 1s}]}]}`, p.targets)
	for name, text := range map[string]string{file: strings.ReplaceAll(config, "\t", ""), filepath.Join(directory, "rules-1.yaml"): rules} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	started, err := programs.Start(programs.Program{Name: "prometheus", Path: binary, Log: filepath.Join(directory, "log"),
		Args: []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(directory, "data"), "--web.listen-address=127.0.0.1:0"}})
	if err != nil {
		r.t.Fatal(err)
	}
	server := &program{started, r.t}
	r.t.Cleanup(server.Kill)
	server.await(`msg="Listening on"`)
	p.address = "http://" + regexp.MustCompile(`msg="Listening on" address=(\S+)`).FindStringSubmatch(server.text())[1]
	return p
}

// scrape has these programs scraped, and no others.
func (p *prometheus) scrape(programs ...*program) {
	p.t.Helper()
	addresses := []string{}
	for _, s := range programs {
		addresses = append(addresses, strings.TrimPrefix(s.address(), "http://"))
	}
	text, err := json.Marshal([]map[string][]string{{"targets": addresses}})
	if err == nil { // at once: the server must not read half of it
		err = os.WriteFile(p.targets+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(p.targets+".new", p.targets)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// hasData reports whether the server has data for a query now.
func (p *prometheus) hasData(query string) bool {
	p.t.Helper()
	status, text := pageAt(p.t, p.address+"/api/v1/query?query="+url.QueryEscape(query))
	if status == http.StatusServiceUnavailable {
		return false // it listens, and starts
	}
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &answer); status == http.StatusBadRequest || err != nil {
		p.t.Fatalf("%s: %d %s, %v", query, status, text, err)
	}
	return status == http.StatusOK && len(answer.Data.Result) > 0
}
