package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"eventsv2/test/testenv"
)

// shownPage is a page of docs whose programs and commands a test runs.
type shownPage struct {
	*rig
	name, text string
	dir        string // where its files are written, and its commands run
	out        *lines // what its program prints
}

func (r *rig) shownPage(name string) *shownPage {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		r.t.Fatal(err)
	}
	return &shownPage{rig: r, name: name, text: string(text), dir: r.t.TempDir(), out: newLines()}
}

// runProgram builds and starts the page's program; it is stopped when the test ends.
func (p *shownPage) runProgram(change map[string]string) {
	p.t.Helper()
	cmd := exec.Command(buildShown(p.t, p.name, block(p.t, p.text, "go")))
	log := newLines()
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env(change), p.out, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("the program of %s printed\n%s\nits log is\n%s", p.name, p.out, log)
		}
	})
}

// runSession runs the commands that the page shows, in their order. One that ends with & goes on until the test ends. The
// database and the notifier are the test's, whatever the page exports. What a command prints
// has to be what stands below it, if something does.
func (p *shownPage) runSession() {
	p.t.Helper()
	for _, shown := range strings.Split("\n"+block(p.t, p.text, "console"), "\n$ ")[1:] {
		command, want, _ := strings.Cut(strings.TrimSuffix(shown, "\n"), "\n")
		name, background := strings.CutSuffix(command, " &")
		switch {
		case strings.HasPrefix(command, "export "), strings.Contains(command, " install "): // see install
		case command == "go run . &":
			p.runProgram(nil)
		case background:
			p.startShown(strings.Fields(name))
		default:
			if got := p.shell(command); want != "" && got != want+"\n" {
				p.t.Errorf("%s: %s printed\n%s\nthe page shows\n%s", p.name, command, got, want)
			}
		}
	}
}

func (p *shownPage) startShown(words []string) {
	p.t.Helper()
	handlers := filepath.Join(p.dir, "handlers.yaml")
	p.start(words[0], map[string]string{"HANDLERS_FILE": handlers}, words[1:]...)
}

// shell runs a command in the directory of the page's files, and returns what it prints.
func (p *shownPage) shell(command string) string {
	p.t.Helper()
	cmd := exec.CommandContext(testenv.Context(p.t), "sh", "-c", command)
	cmd.Dir, cmd.Env = p.dir, p.env(map[string]string{"PATH": binaries + ":" + os.Getenv("PATH")})
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %s: %v\n%s", p.name, command, err, out)
	}
	return string(out)
}

// ownAddress replaces the address of the page's target by one that no other test uses: every
// address of 127.0.0.0/8 is this machine.
func (p *shownPage) ownAddress() {
	own := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)) //nolint:gosec // no secret
	p.text = strings.ReplaceAll(p.text, "127.0.0.1", own)
}

// writeHandlers writes the page's handlers file.
func (p *shownPage) writeHandlers() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "handlers.yaml"), []byte(block(p.t, p.text, "yaml")), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// TestQuickStartWithHTTPTargetsWorks runs what docs/quick-start.md shows.
func TestQuickStartWithHTTPTargetsWorks(t *testing.T) {
	t.Parallel()
	p := newPostgresRig(t).shownPage("quick-start.md")
	p.ownAddress()
	p.writeHandlers()
	p.runSession()
	p.out.await(t, "mail about {\"order\": 17}, event 1\n")
	if _, err := p.pool.Exec(testenv.Context(t), block(t, p.text, "sql")); err != nil {
		t.Fatal(err)
	}
	p.out.await(t, "mail about {\"order\": 18}, event 2\n")
	p.awaitSQL("the event has ended", `SELECT count(*) = 0 FROM events_v2`)
}

// TestFAQCommandsWork runs the commands of docs/faq.md, in their order, on a queue in which event 17 waits.
func TestFAQCommandsWork(t *testing.T) {
	t.Parallel()
	p := newPostgresRig(t).shownPage("faq.md")
	p.emit(event("order_placed", `1`))
	if _, err := p.pool.Exec(testenv.Context(t), `UPDATE events_v2 SET id = 17`); err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    (eventctl .*)$`).FindAllStringSubmatch(p.text, -1)
	if len(commands) < 5 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, command := range commands {
		p.shell(strings.ReplaceAll(command[1], "UUID", canvas.String()))
	}
}

// TestPageFromRiverWorks moves the jobs that wait in River's table, as docs/from-river.md shows, and
// runs them with the page's program.
func TestPageFromRiverWorks(t *testing.T) {
	t.Parallel()
	p := newPostgresRig(t).shownPage("from-river.md")
	for _, sql := range []string{
		`CREATE TYPE river_job_state AS ENUM ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled')`,
		`CREATE TABLE river_job (id bigserial PRIMARY KEY, state river_job_state NOT NULL DEFAULT 'available', kind text NOT NULL,
			args jsonb, scheduled_at timestamptz NOT NULL DEFAULT now())`,
		`INSERT INTO river_job (state, kind, args, scheduled_at) VALUES
			('available', 'order_placed', '{"order": 1}', now()), ('retryable', 'order_placed', '{"order": 2}', now() - interval '1 minute'),
			('scheduled', 'order_placed', '{"order": 3}', now() + interval '1 day'), ('running', 'order_placed', '{"order": 4}', now()),
			('completed', 'order_placed', '{"order": 5}', now()), ('available', 'other', '{}', now())`,
		block(t, p.text, "sql"),
	} {
		if _, err := p.pool.Exec(testenv.Context(t), sql); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	if left := one[string](p.rig, `SELECT string_agg(state || ' ' || kind, ', ' ORDER BY id) FROM river_job`); left != "running order_placed, completed order_placed, available other" {
		t.Errorf("River's table has %s", left)
	}
	if _, err := p.pool.Exec(testenv.Context(t), `CREATE TABLE orders (id int PRIMARY KEY, mailed boolean NOT NULL DEFAULT false)`); err != nil {
		t.Fatal(err)
	}
	p.runProgram(nil)
	for _, order := range []int{1, 2, 17} {
		p.out.await(t, fmt.Sprintf("mail about order %d\n", order))
	}
	p.awaitSQL("only the job of tomorrow waits", `SELECT count(*) = 1 AND bool_and(value = '{"order": 3}' AND delay_until > now()) FROM events_v2`)
	if !one[bool](p.rig, `SELECT mailed FROM orders WHERE id = 17`) {
		t.Error("the handler's write is missing")
	}
}

// TestPageFromCloudTasksWorks runs what docs/from-cloud-tasks.md shows.
func TestPageFromCloudTasksWorks(t *testing.T) {
	t.Parallel()
	p := newPostgresRig(t).shownPage("from-cloud-tasks.md")
	p.ownAddress()
	p.writeHandlers()
	p.runSession()
	p.out.await(t, "mail about order 17, for event 1\n")
	p.awaitSQL("only the task of later waits", `SELECT count(*) = 1 AND bool_and(value = '{"order": 18}' AND delay_until > now() + interval '4 minutes') FROM events_v2`)
	if n := strings.Count(p.out.String(), "mail about order 17"); n != 1 {
		t.Errorf("the named task ran %d times", n)
	}
	if limits := one[string](p.rig, `SELECT (SELECT per_minute FROM rate_limits) || ' ' || (SELECT max_running FROM concurrency_limits)`); limits != "600 10" {
		t.Errorf("the limits are %s", limits)
	}
}

// TestPageFromPubSubWorks runs the program of docs/from-pubsub.md beside a subscription that
// gets each message twice.
func TestPageFromPubSubWorks(t *testing.T) {
	t.Parallel()
	emulator := testenv.EmulatorHost(t)
	p := newPostgresRig(t).shownPage("from-pubsub.md")
	project := fmt.Sprintf("book-%x", rand.Uint64()) //nolint:gosec // no secret
	publishOrders(t, emulator, project)
	p.runProgram(map[string]string{"GOOGLE_CLOUD_PROJECT": project, "PUBSUB_EMULATOR_HOST": emulator})
	for _, printed := range []string{"mail about order 17 of ada\n", "index order 17\n", "mail about order 18 of \n", "index order 18\n"} {
		p.out.await(t, printed)
	}
	p.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
}

// publishOrders makes the topic and the subscription that docs/from-pubsub.md reads, and publishes a message.
func publishOrders(t *testing.T, emulator, project string) {
	t.Helper()
	ctx := testenv.Context(t)
	client, err := pubsub.NewClient(ctx, project, option.WithEndpoint(emulator), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	topic := "projects/" + project + "/topics/orders"
	if _, err := client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: "projects/" + project + "/subscriptions/orders", Topic: topic}); err != nil {
		t.Fatal(err)
	}
	publisher := client.Publisher("orders")
	defer publisher.Stop()
	if _, err := publisher.Publish(context.WithoutCancel(ctx), &pubsub.Message{
		Data: []byte(`{"order": 17}`), Attributes: map[string]string{"user": "ada"}}).Get(ctx); err != nil {
		t.Fatal(err)
	}
}
