package eventctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/pstest"

	"eventsv2/test/testenv"
)

func line(value string) string {
	return `{"canvas_id":"` + canvasA + `","module":"WORKER","name":"greet","modifier":"_","value":` + value + "}\n"
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(fmt.Sprintf(`{"n": %d}`, i)))
	}
	return b.String()
}

func TestEmitFileEmitsEachLine(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := c.publishing()
	c.run("emit", "--file", c.file(lines(2500))).is(exitOK, "emitted 2500 events: ids 1 to 2500\n", "")
	var doc emitted
	c.runWith(c.ctx, strings.NewReader(lines(3)), "emit", "--json", "--file", "-").is(exitOK, "", "").into(&doc)
	if doc.Count != 3 || *doc.FirstID != 2501 || *doc.LastID != 2503 {
		t.Errorf("%+v", doc)
	}
	if got := one[string](c, `SELECT value FROM events_v2 WHERE id = 1234`); got != `{"n": 1233}` {
		t.Errorf("value 1234 is %s", got)
	}
	if n := len(server.Messages()); n != 2503 {
		t.Errorf("%d notifications for 2503 events", n)
	}
}

func TestEmitFileLeavesNotificationsToTheRelay(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	conn, err := c.pool.Acquire(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(c.ctx, `LISTEN events_v2_pending`); err != nil {
		t.Fatal(err)
	}
	c.run("emit", "--no-notify", "--file", c.file(lines(1500))).is(exitOK, "emitted 1500 events", "")
	if _, err := conn.Conn().WaitForNotification(c.ctx); err != nil {
		t.Errorf("the relay was not woken: %v", err)
	}
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 1500 {
		t.Errorf("%d notifications of 1500 are pending", n)
	}
}

func TestEmitFileWritesNothingForBadInput(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.publishing()
	good := lines(1200)
	for name, test := range map[string]struct{ content, want string }{
		"not JSON":      {good + "{\n", ":1201: is not JSON"},
		"missing field": {good + `{"canvas_id":"` + canvasA + `"}` + "\n", ":1201: module: is missing"},
		"wrong type":    {`{"canvas_id":"` + canvasA + `","module":7,"name":"n","modifier":"_","value":1}`, ":1: module: is a number"},
		"unknown key":   {strings.Replace(line("1"), "{", `{"retries":-1,`, 1), ":1: retries: is not a key"},
		"twice":         {strings.Replace(line("1"), "{", `{"name":"x",`, 1), ":1: name: is there twice"},
		"NUL":           {good + line(`"\u0000"`), `:1201: value: holds \u0000`},
		"bad UTF-8":     {good + line("\"\xff\""), ":1201: value: is not valid UTF-8"},
		"binary":        {"\x7fELF\x00\x01\xff", ":1: is not JSON"},
		"10 MB":         {good + line(`"`+strings.Repeat("x", 10<<20)+`"`), ":1201: is longer than"},
		"large value":   {good + line(`"`+strings.Repeat("x", 300_000)+`"`), ":1201: value: is 300002 bytes long"},
		"no object":     {"[]\n", ":1: is JSON, but no object"},
		"both delays":   {strings.Replace(line("1"), "{", `{"delay":"1s","delay_until":"2030-01-01T00:00:00Z",`, 1), ":1: delay: is there together with"},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.file(test.content)
			r := c.run("emit", "--file", path)
			r.t = t
			r.is(exitBadInput, "", "eventctl: "+path+test.want)
			r = c.runWith(c.ctx, strings.NewReader(test.content), "emit", "--json", "--file", "-")
			r.t = t
			r.is(exitBadInput, "", `{"error":"standard input`+strings.ReplaceAll(test.want, `\`, `\\`))
		})
	}
	c.run("emit", "--file", t.TempDir()+"/none").is(exitBadInput, "", "no such file")
	c.run("emit", "--file", t.TempDir()).is(exitBadInput, "", "is a directory")
	if n := c.events(); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

func TestEmptyFileEmitsNothing(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, content := range []string{"", "\n \n"} {
		c.run("emit", "--no-notify", "--file", c.file(content)).is(exitOK, "emitted 0 events\n", "has no events")
	}
	r := c.run("emit", "--no-notify", "--json", "--file", os.DevNull).is(exitOK, "", "warning")
	if r.out != `{"emitted":0,"first_id":null,"last_id":null}`+"\n" {
		t.Errorf("stdout: %s", r.out)
	}
}

// interrupter ends a context at the nth request to publish.
type interrupter struct {
	mu     sync.Mutex
	left   int
	cancel context.CancelFunc
}

func (i *interrupter) React(any) (bool, any, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left--; i.left == 0 {
		i.cancel()
	}
	return false, nil, nil
}

func TestInterruptedEmitReportsItsProgress(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.publishing(pstest.ServerReactorOption{FuncName: "Publish", Reactor: &interrupter{left: 2, cancel: cancel}})
	path := c.file(lines(3500))
	c.runWith(ctx, nil, "emit", "--file", path).is(exitFailed, "emitted 2000 events: ids 1 to 2000\n",
		"interrupted: emitted 2000 of 3500 events; go on with line 2001 of "+path)
	if n := c.events(); n != 2000 {
		t.Errorf("%d events were emitted, not 2000", n)
	}
}

func TestInterruptBeforeTheFirstLineWritesNothing(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, cancel := context.WithCancel(c.ctx)
	silent, writer := io.Pipe() // a standard input on which nothing comes
	defer func() { _ = writer.Close() }()
	reading := readSignal{silent, cancel}
	c.runWith(ctx, reading, "emit", "--no-notify", "--file", "-").is(exitFailed, "", "interrupted: nothing was emitted")
	c.runWith(ctx, nil, "emit", "--no-notify", "--file", c.file(lines(3))).is(exitFailed, "", "interrupted: nothing was emitted")
	if n := c.events(); n != 0 {
		t.Errorf("%d events were emitted", n)
	}
}

// readSignal calls a function when it is read from.
type readSignal struct {
	io.Reader
	reading func()
}

func (r readSignal) Read(p []byte) (int, error) {
	r.reading()
	return r.Reader.Read(p)
}

func TestFailedEmitReportsItsProgress(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`ALTER TABLE events_v2 ADD CONSTRAINT enough CHECK (id <= 2000)`)
	path := c.file(lines(2500))
	r := c.run("emit", "--no-notify", "--file", path).is(exitFailed, "emitted 2000 events",
		"emitted 2000 of 2500 events; lines 2001 to 2500 of "+path+" failed")
	if n := c.events(); n != 2000 {
		t.Errorf("%d events were emitted, not 2000; %s", n, r.err)
	}
}

func TestFileThatChangesDuringEmitIsReported(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{"shorter": lines(1), "broken": "{", "longer": lines(5)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			path := c.file(change)
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			e := &fileEmitter{connection: silentConnection(t, c), input: &input{file, path}, total: 3}
			defer func() { _ = file.Close() }()
			err = e.run(c.ctx, configOf(t, c).Limits())
			if name == "longer" {
				if err != nil || e.done.Count != 3 {
					t.Errorf("emitted %d, %v", e.done.Count, err)
				}
				return
			}
			if err == nil || exitStatus(err) != exitFailed {
				t.Errorf("the error is %v, exit status %d", err, exitStatus(err))
			}
		})
	}
}

func TestEmitFileReadsANamedPipe(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	var writing sync.WaitGroup
	writing.Go(func() {
		_, err := io.WriteString(writer, lines(3))
		if closeErr := writer.Close(); err != nil || closeErr != nil {
			t.Errorf("write to the pipe: %v, %v", err, closeErr)
		}
	})
	c.run("emit", "--no-notify", "--file", fmt.Sprintf("/dev/fd/%d", reader.Fd())).is(exitOK, "emitted 3 events", "")
	writing.Wait()
}

func TestEmitPublishesToTheOfficialEmulator(t *testing.T) {
	t.Parallel()
	host := testenv.EmulatorHost(t)
	c := newCLI(t)
	c.env["PUBSUB_EMULATOR_HOST"], c.env["PUBSUB_CREATE"], c.env["PUBLISH_TIMEOUT"] = host, "true", "1m"
	c.env["PUBSUB_PROJECT_ID"] = "eventctl-" + strings.ToLower(strings.ReplaceAll(t.Name(), "_", "-"))
	c.run("emit", "--file", c.file(lines(1100))).is(exitOK, "emitted 1100 events", "")
	if n := one[int](c, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 0 {
		t.Errorf("%d notifications are pending", n)
	}
}

func TestRefusalByTheDatabaseIsAFailure(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.exec(`ALTER TABLE events_v2 ADD CONSTRAINT refused CHECK (false) NOT VALID`)
	r := c.run("emit", "--no-notify", "--file", c.file(lines(1)))
	r.is(exitFailed, "emitted 0 events", "emitted 0 of 1 event; lines 1 to 1")
	if !strings.Contains(r.err, "events_v2") {
		t.Errorf("stderr does not name the table: %s", r.err)
	}
}
