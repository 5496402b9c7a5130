package check

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"eventsv2/test/programs"
)

// patience is how long a program may take to listen, to answer and to stop, on however busy a machine.
const patience = 2 * time.Minute

// Run starts the programs with the command lines and the environments that the files give them, but for a database
// that does not answer, and asks what their probes ask. It builds the programs into a directory, for which it needs go.
func Run(ctx context.Context, r *Report, directory, into string, all []Program) error {
	if err := programs.Build(ctx, into, programs.Deployed(programs.Worker, programs.Cron, programs.Ctl)); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, p := range all {
		if p.binary() == "" {
			continue // reported already
		}
		line := strings.Join(append([]string{p.binary()}, p.Args...), " ")
		if !seen[line] {
			seen[line] = true
			checkLine(ctx, r, into, p)
		}
		environment := fmt.Sprint(p.binary(), p.Env, p.Probes)
		if p.Kind != job && !seen[environment] {
			seen[environment] = true
			runOne(ctx, r, directory, into, i, p)
		}
	}
	return nil
}

// checkLine has a program parse its command line, and say how it is used in place of doing it.
func checkLine(ctx context.Context, r *Report, bin string, p Program) {
	r.count("commands")
	out, err := exec.CommandContext(ctx, filepath.Join(bin, p.binary()), append(slices.Clone(p.Args), "--help")...).CombinedOutput() //nolint:gosec // a program of ours
	var words []string
	for _, arg := range p.Args {
		if !strings.HasPrefix(arg, "-") {
			words = append(words, arg)
		}
	}
	usage := strings.Join(append([]string{p.binary()}, words...), " ")
	if err != nil || !regexp.MustCompile(`(?m)^\s+`+regexp.QuoteMeta(usage)+`( \[|$)`).Match(out) {
		r.problem(p.Where, "%s does not know its arguments %q: %s", p.binary(), p.Args, strings.TrimSpace(string(out)))
	}
}

// databasePort matches the port of a DATABASE_URL of keywords and values.
var databasePort = regexp.MustCompile(`\bport=\d+`)

// runOne starts a program, and asks for the paths of its probes: one that does not exist is 404.
func runOne(ctx context.Context, r *Report, directory, bin string, number int, p Program) {
	r.count("started")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	environment := maps.Clone(p.Env)
	// Port 1 of the loopback interface refuses: a program waits for its database then, and answers its probes.
	environment["DATABASE_URL"] = databasePort.ReplaceAllString(environment["DATABASE_URL"], "port=1")
	environment["PUBSUB_EMULATOR_HOST"] = "127.0.0.1:1"
	environment["PORT"] = "0"
	if environment["HANDLERS_FILE"] != "" {
		environment["HANDLERS_FILE"] = filepath.Join(directory, "deploy/gke/base/handlers.yaml")
	}
	address := make(chan string, 1)
	var last string // line; read after the program has ended
	// The programs log to the standard error, and what is read is the standard output.
	started, err := programs.Start(programs.Program{Name: p.Where, Path: "/bin/sh",
		Args: append([]string{"-c", `exec "$0" "$@" 2>&1`, filepath.Join(bin, p.binary())}, p.Args...),
		Env:  programs.Environment(environment), Log: filepath.Join(bin, fmt.Sprintf("%s-%d.log", p.binary(), number)),
		Read: func(out io.Reader) { last = readAddress(out, address) }})
	if err != nil {
		r.problem(p.Where, "%v", err)
		return
	}
	defer started.Terminate(patience)
	select {
	case at := <-address:
		for _, probe := range p.Probes {
			ask(ctx, r, p, probe, at)
		}
	case <-started.Exited:
		r.problem(p.Where, "%s ends with its environment: %s", p.binary(), last)
	case <-ctx.Done():
		r.problem(p.Where, "%s does not listen", p.binary())
	}
}

// readAddress reads what a program logs to its end, says where it listens, and returns the last line.
func readAddress(out io.Reader, address chan<- string) (last string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		last = lines.Text()
		var line struct{ Message, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "health endpoints listen" {
			select {
			case address <- line.Address:
			default: // it says so once
			}
		}
	}
	return last
}

func ask(ctx context.Context, r *Report, p Program, probe Probe, address string) {
	url := "http://127.0.0.1:" + address[strings.LastIndex(address, ":")+1:] + probe.Path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		r.problem(p.Where, "%v", err)
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.problem(p.Where, "its %s probe has no answer: %v", probe.Name, err)
		return
	}
	_ = response.Body.Close() // only the status matters
	// Without its database a program is alive and not ready.
	want := http.StatusOK
	if probe.Name == "readiness" {
		want = http.StatusServiceUnavailable
	}
	if response.StatusCode != want {
		r.problem(p.Where, "its %s probe of %s is answered with %s, and it should be %d", probe.Name, probe.Path, response.Status, want)
	}
}
