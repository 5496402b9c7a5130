package check

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eventsv2/internal/setup"
	"eventsv2/service"
)

// Program is one of the queue's programs as a file of deploy/ starts it, wherever that is.
type Program struct {
	Where   string // the file, and the name of the program in it
	Kind    kind
	Image   string
	Command []string
	Args    []string
	Env     map[string]string // a variable that comes from a secret has a value of the checker's
	Secrets map[string]string // of these variables, the secrets
	Ports   []int
	Probes  []Probe
	Account string   // the Google service account that it acts as, without its project
	Mounts  []string // directories that are mounted
	Beside  []string // arguments of the Cloud SQL Auth Proxy; empty if none runs beside it
	Stop    time.Duration
	// SQLSocket says that Cloud Run mounts the socket of the database.
	SQLSocket bool
}

// kind is how the platform runs a program.
type kind string

// The kinds. A served program gets requests, and its platform sets PORT.
const (
	served kind = "Cloud Run service"
	pooled kind = "Cloud Run worker pool"
	job    kind = "job"
	pod    kind = "pod"
)

// Probe is a request by which a platform finds out whether a program is well.
type Probe struct {
	Name, Path string
	Port       int
}

// binary is the program that the command names; "" if it names none.
func (p Program) binary() string {
	if len(p.Command) != 1 || path.Dir(p.Command[0]) != "/" {
		return ""
	}
	return path.Base(p.Command[0])
}

// cloudRunStops is how long Cloud Run waits after SIGTERM.
const cloudRunStops = 10 * time.Second

// isProxy reports whether an image is the Cloud SQL Auth Proxy.
func isProxy(image string) bool { return strings.Contains(image, "/cloud-sql-proxy:") }

// variables are the variables of docs/configuration.md, with the programs that read them.
func variables(r *Report, t tree) map[string]string {
	const page = "docs/configuration.md"
	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|[^|]*\\| ([^|]*) \\|").FindAllStringSubmatch(t.read(r, page), -1)
	known := map[string]string{}
	for _, row := range rows {
		known[row[1]] = row[2]
	}
	if len(known) < 30 {
		r.problem(page, "its table of variables has %d rows: it is read no longer", len(known))
	}
	return known
}

// openTelemetry are the variables of OpenTelemetry that deploy/ may set: docs/telemetry.md names them.
var openTelemetry = regexp.MustCompile("OTEL_[A-Z_]+")

// checkPrograms checks what the files say of programs, whatever the platform.
func checkPrograms(r *Report, t tree, programs []Program) {
	known := variables(r, t)
	telemetry := openTelemetry.FindAllString(t.read(r, "docs/telemetry.md"), -1)
	image := readImage(r, t)
	checkHandlersExample(r, t)
	for _, p := range programs {
		r.count("programs")
		checkEnvironment(r, p, known, telemetry)
		checkImage(r, p, image)
		checkLogin(r, p)
		checkStop(r, p)
	}
}

// checkHandlersExample checks the handlers file of deploy/gke, which stands for that of the user.
func checkHandlersExample(r *Report, t tree) {
	const example = "deploy/gke/base/handlers.yaml"
	if _, _, err := service.CheckHandlersFile(t.path(example)); err != nil {
		r.problem(example, "the worker refuses it: %v", err)
	}
}

// checkEnvironment checks that every variable exists for its program, that those of the program are there and make
// sense to it, and that none is set that the platform sets itself.
func checkEnvironment(r *Report, p Program, known map[string]string, telemetry []string) {
	for name := range p.Env {
		r.count("variables")
		used, ok := known[name]
		switch {
		case ok && (used == "all" || slices.Contains(strings.Split(used, ", "), p.binary())):
		case ok:
			r.problem(p.Where, "%s is not read by %s, but by %s", name, p.binary(), used)
		case slices.Contains(telemetry, name):
		case p.binary() == "worker" && p.Secrets[name] != "": // of a source of webhooks
		default:
			r.problem(p.Where, "there is no variable %s", name)
		}
	}
	if _, set := p.Env["PORT"]; set && p.Kind == served {
		r.problem(p.Where, "Cloud Run sets PORT itself, and refuses it")
	}
	if p.Kind == served && p.Env["OTEL_METRICS_EXPORTER"] == "prometheus" {
		r.problem(p.Where, "its port has an address, under which /metrics would name handlers to whoever asks")
	}
	c, err := setup.Load(p.Env)
	if err != nil {
		r.problem(p.Where, "%s refuses its environment: %v", p.binary(), err)
		return
	}
	if p.Kind == job {
		return
	}
	if !c.NotifierNamed && !c.UsesPubSub() {
		r.problem(p.Where, "neither NOTIFIER nor PUBSUB_PROJECT_ID is set, so that it would use Postgres, whatever the others use")
	}
	if c.UsesPubSub() {
		if err := c.PubSub().Validate(); err != nil {
			r.problem(p.Where, "%s refuses its environment: %v", p.binary(), err)
		}
	}
	if p.binary() != "worker" {
		return
	}
	if dir := path.Dir(p.Env["HANDLERS_FILE"]); p.Env["HANDLERS_FILE"] == "" || !slices.Contains(p.Mounts, dir) {
		r.problem(p.Where, "HANDLERS_FILE is %q, and nothing is mounted there", p.Env["HANDLERS_FILE"])
	}
}

// image is the image of Dockerfile.
type image struct {
	binaries []string
	port     int
}

func readImage(r *Report, t tree) (i image) {
	const name = "Dockerfile"
	text := t.read(r, name)
	for _, match := range regexp.MustCompile(`ln -s eventsv2 /out/([a-z]+)`).FindAllStringSubmatch(text, -1) {
		i.binaries = append(i.binaries, match[1])
	}
	if match := regexp.MustCompile(`(?m)^ENV PORT=(\d+)$`).FindStringSubmatch(text); match != nil {
		i.port, _ = strconv.Atoi(match[1]) // digits
	}
	if len(i.binaries) == 0 || i.port == 0 {
		r.problem(name, "the programs and the port of the image are read no longer")
	}
	return i
}

// checkImage checks that the image is the one that is pushed, and has the program, the port and the paths.
func checkImage(r *Report, p Program, i image) {
	const wanted = exampleRegion + "-docker.pkg.dev/" + exampleProject + "/events/eventsv2:" + exampleTag
	if p.Image != wanted {
		r.problem(p.Where, "its image is %s, and the one that is pushed is %s", p.Image, wanted)
	}
	if !slices.Contains(i.binaries, p.binary()) {
		r.problem(p.Where, "its command is %q, and the image has %v in /", p.Command, i.binaries)
	}
	listens := i.port
	if port, err := strconv.Atoi(p.Env["PORT"]); err == nil {
		listens = port
	}
	for _, port := range p.Ports {
		if port != listens {
			r.problem(p.Where, "port %d is exposed, and the program listens on %d", port, listens)
		}
	}
	if p.Kind == served && len(p.Ports) != 1 {
		r.problem(p.Where, "a service of Cloud Run has one port, and it has %d", len(p.Ports))
	}
	names := map[string]bool{}
	for _, probe := range p.Probes {
		r.count("probes")
		names[probe.Name] = true
		if probe.Port != listens {
			r.problem(p.Where, "its %s probe asks port %d, and the program listens on %d", probe.Name, probe.Port, listens)
		}
		// A database that is away makes /readyz fail: a restart would not help.
		if wanted := map[string]string{"readiness": "/readyz"}[probe.Name]; wanted == "" && probe.Path != "/healthz" || wanted != "" && probe.Path != wanted {
			r.problem(p.Where, "its %s probe asks %q", probe.Name, probe.Path)
		}
	}
	if p.Kind == job {
		return
	}
	needed := []string{"startup", "liveness"}
	if p.Kind == pod {
		needed = append(needed, "readiness")
	}
	for _, name := range needed {
		if !names[name] {
			r.problem(p.Where, "it has no %s probe", name)
		}
	}
}

// checkLogin checks that a program reaches the database as the user that its account is.
func checkLogin(r *Report, p Program) {
	where := map[string]string{"worker": "events-worker", "cron": "events-cron", "eventctl": "events-migrations"}
	if p.Account != where[p.binary()] {
		r.problem(p.Where, "it acts as %q, and is %s", p.Account, p.binary())
	}
	if p.Secrets["DATABASE_URL"] != "" {
		if p.Kind == job && !p.SQLSocket && len(p.Beside) == 0 {
			r.problem(p.Where, "nothing leads to the database")
		}
		return
	}
	url := keywords(p.Env["DATABASE_URL"])
	for key, want := range map[string]string{"host": "127.0.0.1", "port": "5432", "dbname": "events", "sslmode": "disable",
		"user": p.Account + "@" + exampleProject + ".iam"} {
		if url[key] != want {
			r.problem(p.Where, "DATABASE_URL has %s=%s, and it should be %s", key, url[key], want)
		}
	}
	for _, want := range []string{"--auto-iam-authn", "--port=5432", exampleProject + ":" + exampleRegion + ":events"} {
		if !slices.Contains(p.Beside, want) {
			r.problem(p.Where, "the Cloud SQL Auth Proxy beside it has no argument %s: %q", want, p.Beside)
		}
	}
}

// keywords takes a DATABASE_URL of keywords and values apart.
func keywords(url string) map[string]string {
	pairs := map[string]string{}
	for _, field := range strings.Fields(url) {
		key, value, _ := strings.Cut(field, "=")
		pairs[key] = value
	}
	return pairs
}

// checkStop checks that a worker has ended before its platform kills it, and the proxy not before the worker.
func checkStop(r *Report, p Program) {
	if p.binary() != "worker" {
		return
	}
	c, err := setup.Load(p.Env)
	if err != nil {
		return // reported already
	}
	needs := c.GracePeriod + 2*time.Second // docs/configuration.md
	if !c.UsesPubSub() {
		needs += 2 * time.Second
	}
	if needs > p.Stop {
		r.problem(p.Where, "WORKER_GRACE_PERIOD is %s, with which a worker stops within %s, and it is killed after %s", c.GracePeriod, needs, p.Stop)
	}
	if p.Kind == pod {
		return // the proxy is a sidecar, and ends last
	}
	for _, arg := range p.Beside {
		if delay, ok := strings.CutPrefix(arg, "--min-sigterm-delay="); ok {
			if d, err := time.ParseDuration(delay); err == nil && d >= c.GracePeriod && d < p.Stop {
				return
			}
		}
	}
	r.problem(p.Where, "the Cloud SQL Auth Proxy beside it ends before WORKER_GRACE_PERIOD is over: %q", p.Beside)
}
