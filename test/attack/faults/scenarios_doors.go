package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"eventsv2/internal/backoff"
)

func doorScenarios() []scenario {
	return []scenario{
		{"slack-replay", "the same signed bytes make one event, whatever Content-Type they come with", 15 * time.Second, slackReplay},
		{"stalled-bodies", "requests that stall before they are verified take little memory, and are cut off", 60 * time.Second, stalledBodies},
		{"metadata-target", "no event is posted to a metadata service", 20 * time.Second, metadataTarget},
	}
}

// slackSecret signs the webhooks of the scenarios.
const slackSecret = "8f742231b10e8888abcd99yyyzzz85a5"

// door starts a worker with a source of webhooks and a target in the metadata
// network, beside the usual handler.
func (r *rig) door(ctx context.Context) *program {
	path := filepath.Join(r.dir, "door.yaml")
	text := fmt.Sprintf(`handlers:
  - {module: WORKER, name: work, modifier: _, url: %q}
  - {module: WORKER, name: metadata, modifier: _, url: "http://169.254.169.254/latest/meta-data/", timeout: 5s, max_retries: 0}
webhooks:
  - {source: slack, scheme: slack, secrets: [SLACK_SECRET], module: WORKER, modifier: _, name: work}
`, r.target.server.URL()+"/door")
	r.must(os.WriteFile(path, []byte(text), 0o600))
	return r.worker(ctx, "door", map[string]string{"HANDLERS_FILE": path, "SLACK_SECRET": slackSecret})
}

func slackReplay(ctx context.Context, r *rig) {
	worker := r.door(ctx)
	to := r.url(ctx, worker) + "/webhooks/" + canvas(0).String() + "/slack"
	body := `{"type":"event_callback","event_id":"Ev08MFMKH6","event":{"type":"message","text":"hello"}}`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(slackSecret))
	_, _ = mac.Write([]byte("v0:" + now + ":" + body)) // never fails
	send := func(contentType string) int {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
		r.must(err)
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("X-Slack-Request-Timestamp", now)
		request.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
		reply, err := http.DefaultClient.Do(request)
		r.must(err)
		_ = reply.Body.Close() // only the status counts
		return reply.StatusCode
	}
	if status := send("application/json"); status/100 != 2 {
		r.fatalf("the genuine request is answered with %d", status)
	}
	for i := range 20 {
		send(fmt.Sprintf("application/x-www-form-urlencoded; n=%d", i))
	}
	made := r.number(ctx, `SELECT (SELECT count(*) FROM events_v2) + (SELECT count(*) FROM event_log)`)
	if made != 1 {
		r.failf("21 requests with the same signed bytes made %d events, want 1", made)
	}
	r.figure("made=%d", made)
}

// How many requests stall, and how much memory the worker may have taken at its
// highest, all of it counted.
const (
	stalledCount = 2000
	headerCount  = 1000
	memoryLimit  = 200 << 20
)

// stalledBodies sends bodies all but their last byte, and headers that do not end.
func stalledBodies(ctx context.Context, r *rig) {
	worker := r.door(ctx)
	address := strings.TrimPrefix(r.url(ctx, worker), "http://")
	webhook := "POST /webhooks/" + canvas(0).String() + "/slack HTTP/1.1\r\nHost: door\r\n"
	body := webhook + fmt.Sprintf("Content-Type: application/json\r\nX-Slack-Request-Timestamp: %d\r\nX-Slack-Signature: v0=00\r\nContent-Length: %d\r\n\r\n",
		time.Now().Unix(), 256<<10) + strings.Repeat(" ", 256<<10-1)
	header := webhook + "X-Long: " + strings.Repeat("x", 900<<10)
	var sending sync.WaitGroup
	stall := func(text string, n int) {
		for range n {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				continue // it may refuse
			}
			r.OnCleanup(func(context.Context) error { _ = conn.Close(); return nil })
			_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Second))
			sending.Go(func() { _, _ = io.WriteString(conn, text) }) // it may be cut off
		}
	}
	// These never send a body at all.
	var silent []net.Conn
	for _, path := range []string{"/healthz", "/nowhere"} {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		r.must(err)
		r.OnCleanup(func(context.Context) error { _ = conn.Close(); return nil })
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: door\r\nContent-Length: 1000\r\n\r\n")
		r.must(err)
		silent = append(silent, conn)
	}
	stall(body, stalledCount)
	stall(header, headerCount)
	sending.Wait()
	backoff.Sleep(ctx, 2*time.Second)
	highest, err := highWater(worker.PID)
	r.must(err)
	r.figure("memory_mb=%d", highest>>20)
	if highest > memoryLimit {
		r.failf("the worker took %d MB, at most %d are allowed", highest>>20, memoryLimit>>20)
	}
	for _, conn := range silent {
		r.must(conn.SetReadDeadline(time.Now().Add(90 * time.Second)))
		if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); err != nil && os.IsTimeout(err) {
			r.failf("a request whose body does not come is not cut off")
			break
		}
	}
	if !worker.Running() {
		r.failf("the worker ended: %s", worker.LastWords())
	}
	r.emit(ctx, batch{label: "beside", n: 20})
	r.awaitDone(ctx, "beside", startLimit)
}

var highWaterPattern = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// highWater is the most memory that a process has had, in bytes.
func highWater(pid int) (int64, error) {
	name := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	match := highWaterPattern.FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%s has no VmHWM", name)
	}
	n, err := strconv.ParseInt(string(match[1]), 10, 64)
	return n << 10, err
}

var refusedAddress = regexp.MustCompile(`(?i)link-local|metadata|not allowed`)

// metadataTarget has an event for a handler whose target is a metadata service.
func metadataTarget(ctx context.Context, r *rig) {
	r.door(ctx)
	r.emit(ctx, batch{label: "beside", n: 5})
	id, err := r.emitter.Emit(ctx, batch{label: "metadata", name: "metadata"}.event(0))
	r.must(err)
	var why string
	if !r.eventually(ctx, time.Minute, func() bool {
		return r.db.QueryRow(ctx, `SELECT last_error FROM event_log WHERE id = $1 AND status = 'FAILED'`, int64(id)).Scan(&why) == nil
	}) {
		r.fatalf("the event for a metadata service has not failed")
	}
	// Without the URL of the request, which an error of net/http begins with.
	_, reason, found := strings.Cut(why, "meta-data/")
	if !found {
		reason = why
	}
	if !refusedAddress.MatchString(reason) {
		r.failf("the event was posted, or tried to be: %s", why)
	}
}
