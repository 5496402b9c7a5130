package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"eventsv2/test/testenv"
	"eventsv2/test/walls"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const root = "../.."

// TestRewrittenModuleCanBeImported does what docs/install.md says, in a copy of the repository, and
// then what README.md says, in a program that gets the module from a proxy.
func TestRewrittenModuleCanBeImported(t *testing.T) {
	t.Parallel()
	// Nobody else's, so that what the go command keeps of it can be told apart.
	owner := "example.com/" + strings.ToLower(rand.Text())
	path := owner + "/eventsv2"
	copied := t.TempDir()
	copyRepository(t, copied)
	var stdout, stderr strings.Builder
	if status := run(t.Context(), []string{path}, copied, &stdout, &stderr); status != 0 {
		t.Fatalf("exit status %d: %s", status, &stderr)
	}
	for _, dir := range []string{"", "bench", "test/attack", "test/deploycheck"} {
		(&goCommand{t: t, dir: filepath.Join(copied, dir)}).run("list", "-deps", "-test", "./...")
	}
	if was, is := picture(t, root), picture(t, copied); is != was {
		t.Errorf("the picture of the imports was\n%sand is\n%s", was, is)
	}

	page, err := os.ReadFile(filepath.Join(copied, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := readProgram(t, string(page))
	app := newApp(t, owner, path, copied)
	app.write("main.go", program.source)
	for _, command := range program.setup {
		switch command[0] + " " + command[1] {
		case "mod init", "mod edit": // it is there, and a path of one's own needs no -replace
		case "get -tool":
			app.run("get", "-tool", command[2]+"@v0.1.0")
		default:
			app.run(command...)
		}
	}
	program.try(t, app)
}

// TestCopyBesideAModuleCanBeImported runs the commands of README.md in a module of one's own beside a copy of the repository.
func TestCopyBesideAModuleCanBeImported(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	copied, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	program := readProgram(t, string(page))
	app := &goCommand{t: t, dir: t.TempDir(), env: []string{"GOFLAGS=-buildvcs=false", "GOWORK=off"}}
	app.write("main.go", program.source)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum")) // so that nobody has to be asked for them
	if err != nil {
		t.Fatal(err)
	}
	app.write("go.sum", string(sums))
	for _, command := range program.setup {
		for i := range command {
			command[i] = strings.Replace(command[i], "../eventsv2", copied, 1)
		}
		app.run(command...)
	}
	program.try(t, app)
}

// picture is the picture in docs/architecture.md.
func picture(t *testing.T, dir string) string {
	t.Helper()
	imports, err := walls.Imports(testenv.Context(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	return walls.Draw(imports)
}

// copyRepository copies what git would take of the repository, as it is now.
func copyRepository(t *testing.T, to string) {
	t.Helper()
	files, err := textFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// goCommand is the go command in a directory.
type goCommand struct {
	t   *testing.T
	dir string
	env []string
}

func (g *goCommand) run(args ...string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "go", args...)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), g.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		g.t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return strings.TrimSpace(stdout.String())
}

// newApp makes a module that has nothing yet, and a proxy that has the module in dir as
// version v0.1.0. The other modules come from where this repository has them.
func newApp(t *testing.T, owner, path, dir string) *goCommand {
	t.Helper()
	proxy := t.TempDir()
	publish(t, proxy, module.Version{Path: path, Version: "v0.1.0"}, dir)
	here := &goCommand{t: t, dir: "."}
	cache := here.run("env", "GOMODCACHE")
	t.Cleanup(func() {
		for _, at := range []string{owner, "cache/download/" + owner} {
			if err := os.RemoveAll(filepath.Join(cache, at)); err != nil {
				t.Error(err)
			}
		}
	})
	app := &goCommand{t: t, dir: t.TempDir(), env: []string{"GOFLAGS=-mod=mod -modcacherw -buildvcs=false", "GOWORK=off",
		"GOPROXY=file://" + proxy + ",file://" + cache + "/cache/download," + here.run("env", "GOPROXY"), "GONOSUMDB=" + owner}}
	app.run("mod", "init", "example.com/app")
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	app.write("go.sum", string(sums))
	return app
}

func (g *goCommand) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// publish packs the module in dir as a proxy serves it.
func publish(t *testing.T, proxy string, version module.Version, dir string) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, version, dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list":                    []byte(version.Version + "\n"),
		version.Version + ".info": fmt.Appendf(nil, `{"Version": %q, "Time": %q}`, version.Version, time.Now().UTC().Format(time.RFC3339)),
		version.Version + ".mod":  mod,
		version.Version + ".zip":  packed.Bytes(),
	} {
		at := filepath.Join(proxy, version.Path, "@v", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readmeProgram is the first program of README.md and what the page shows of its run.
type readmeProgram struct {
	source, table, prints string
	// setup are the arguments of the go commands before those for the database.
	setup [][]string
}

func readProgram(t *testing.T, page string) readmeProgram {
	t.Helper()
	block := func(kind string) string {
		_, rest, _ := strings.Cut(page, "```"+kind+"\n")
		text, _, closed := strings.Cut(rest, "```\n")
		if !closed {
			t.Fatalf("README.md has no ```%s", kind)
		}
		return text
	}
	session := block("console")
	_, prints, runs := strings.Cut(session, "$ go run .\n")
	_, table, makes := strings.Cut(session, "psql \"$DATABASE_URL\" -c '")
	table, _, _ = strings.Cut(table, "'\n")
	p := readmeProgram{source: block("go"), table: table, prints: prints}
	before, _, creates := strings.Cut(session, "$ createdb ")
	for line := range strings.Lines(before) {
		command, isGo := strings.CutPrefix(line, "$ go ")
		if !isGo {
			t.Fatalf("README.md has %q before the database", line)
		}
		p.setup = append(p.setup, strings.Fields(command))
	}
	if !creates || !strings.Contains(session, "$ go tool eventctl migrate up\n") {
		t.Fatalf("README.md does not show how the schema is made:\n%s", session)
	}
	if !strings.HasPrefix(p.source, "package main\n") || !runs || !makes {
		t.Fatalf("the first code of README.md is no program that the commands below it run:\n%s\n%s", p.source, session)
	}
	return p
}

// try runs the program after the commands that stand before it on the page, until it has
// printed what stands there.
func (p readmeProgram) try(t *testing.T, app *goCommand) {
	t.Helper()
	url := testenv.EmptyDatabaseURL(t)
	app.run("build", "-ldflags=-s -w", "-o", "program", ".")
	(&goCommand{t: t, dir: app.dir, env: append(slices.Clone(app.env), "DATABASE_URL="+url)}).run("tool", "eventctl", "migrate", "up")
	ctx := testenv.Context(t) // now that all is compiled
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, p.table); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(app.dir, "program"))
	cmd.Dir, cmd.Env = app.dir, []string{"DATABASE_URL=" + url}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := make([]byte, len(p.prints))
	if _, err := io.ReadFull(stdout, printed); err != nil || string(printed) != p.prints {
		t.Errorf("it printed %q (%v), want %q", printed, err, p.prints)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, &stderr)
	}
}
