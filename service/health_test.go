package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/pubsubnotify"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// webServer is a program that works until it is stopped.
type webServer struct {
	address string
	logs    *observer.ObservedLogs
	stop    context.CancelFunc
	ended   chan error
}

// serveWebhooks starts one that is ready.
func serveWebhooks(t *testing.T, webhooks http.HandlerFunc) *webServer {
	t.Helper()
	return startServer(t, func(context.Context) error { return nil }, webhooks)
}

// startServer starts one on a free port.
func startServer(t *testing.T, ready func(context.Context) error, webhooks http.Handler) *webServer {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	ctx, stop := context.WithCancel(testenv.Context(t))
	t.Cleanup(stop)
	s := &webServer{logs: logs, stop: stop, ended: make(chan error, 1)}
	working := make(chan struct{})
	go func() {
		s.ended <- service.ServeWhile(ctx, ":0", service.HealthHandler(ready, webhooks, zap.New(core)), zap.New(core), func(ctx context.Context) error {
			close(working)
			<-ctx.Done()
			return nil
		})
	}()
	select {
	case <-working:
	case err := <-s.ended:
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(fmt.Sprint(logs.FilterMessage("health endpoints listen").All()[0].ContextMap()["address"]))
	if err != nil {
		t.Fatal(err)
	}
	s.address = net.JoinHostPort("127.0.0.1", port)
	return s
}

// send opens a connection and sends the text of a request.
func (s *webServer) send(t *testing.T, request string) net.Conn {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(testenv.Context(t), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	// A server that has read enough may answer and close before all of it is sent.
	_, _ = io.WriteString(connection, request)
	return connection
}

func TestReadinessFollowsItsParts(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(context.Context) error { return errors.New("no database") }, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/": 404} {
		response, err := client.Get("http://" + s.address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, response.StatusCode, want)
		}
		if strings.Contains(string(body), "database") {
			t.Errorf("%s tells strangers: %s", path, body)
		}
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestProgramIsReadyWithoutPubSub, says so, and logs why, once.
func TestProgramIsReadyWithoutPubSub(t *testing.T) {
	t.Parallel()
	config := service.Config{DatabaseURL: testenv.DatabaseURL(t), Logger: zap.NewNop(), PubSub: pubsubnotify.Config{EmulatorHost: "127.0.0.1:1"}}
	emitter := config
	emitter.NoWorker, emitter.NoRelay, emitter.NoCron, emitter.NoPruner = true, true, true, true
	for name, config := range map[string]service.Config{"worker": config, "emitter": emitter} {
		t.Run(name, func(t *testing.T) {
			resources, err := service.Open(testenv.Context(t), config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := resources.Close(); err != nil {
					t.Error(err)
				}
			}()
			s := startServer(t, resources.Ready, nil)
			for range 3 {
				response, err := http.Get("http://" + s.address + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK || !strings.Contains(string(body), "but Pub/Sub cannot be used, and events are found in the database: it does not answer: check that it runs") || strings.Contains(string(body), "127.0.0.1") {
					t.Errorf("/readyz answers %d %s", response.StatusCode, body)
				}
			}
			http.DefaultClient.CloseIdleConnections()
			if said := s.logs.FilterMessageSnippet("Pub/Sub cannot be used").All(); len(said) != 1 || !strings.Contains(fmt.Sprint(said[0].ContextMap()), "127.0.0.1:1 does not answer") {
				t.Errorf("the log says %v", said)
			}
			s.stop()
			if err := <-s.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLogNamesTheCauseOfLostReadiness, also of one that was never asked while it
// was ready: it waited for its database, and now something else is wrong.
func TestLogNamesTheCauseOfLostReadiness(t *testing.T) {
	t.Parallel()
	database := testenv.Proxy(t, hostOf(t, testenv.DatabaseURL(t)))
	database.Refuse.Store(true)
	resources, err := service.Open(testenv.Context(t), service.Config{DatabaseURL: through(t, testenv.DatabaseURL(t), database), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, resources.Ready, nil)
	refused := func() {
		status, err := get(s.address, "/readyz")
		if err != nil || status != http.StatusServiceUnavailable {
			t.Errorf("/readyz answers %d, %v", status, err)
		}
	}
	refused()
	refused()
	database.Refuse.Store(false)
	if err := resources.AwaitResources(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := resources.Close(); err != nil {
		t.Fatal(err)
	}
	refused()
	refused()
	var causes []string
	for _, line := range s.logs.FilterMessageSnippet("not ready").All() {
		causes = append(causes, fmt.Sprint(line.ContextMap()["error"]))
	}
	if len(causes) != 2 || !strings.Contains(causes[0], "waits for its database") || !strings.Contains(causes[1], "closed pool") {
		t.Errorf("the log says %q", causes)
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

func get(address, path string) (status int, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// TestOpenRequestDelaysNoStop: who is still sending when the program stops is cut
// off, and the program ends as if nobody had been there.
func TestOpenRequestDelaysNoStop(t *testing.T) {
	t.Parallel()
	reading, read := make(chan struct{}), make(chan error, 1)
	s := serveWebhooks(t, func(_ http.ResponseWriter, r *http.Request) {
		close(reading)
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	s.send(t, "POST /webhooks/a/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n12345")
	<-reading
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("the program ended with: %v", err)
	}
	if err := <-read; err == nil {
		t.Error("half a body was read to its end")
	}
	if n := s.logs.FilterMessage("requests were cut off").Len(); n != 1 {
		t.Errorf("the log says %d times that a client was cut off: %v", n, s.logs.All())
	}
}

// TestRequestsAreAnsweredBeforeTheStop to those whose request was there.
func TestRequestsAreAnsweredBeforeTheStop(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}), make(chan struct{})
	s := serveWebhooks(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-proceed
		w.WriteHeader(http.StatusNoContent)
	})
	connection := s.send(t, "POST /webhooks/a/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	<-begun
	s.stop()
	close(proceed)
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 204 ") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestHandlerOwnsItsWholePath, as it came, and so are many headers: nobody else
// answers for it.
func TestHandlerOwnsItsWholePath(t *testing.T) {
	t.Parallel()
	s := serveWebhooks(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Saw", fmt.Sprint(r.URL.Path, " ", len(r.Header.Values("X-Sig"))))
		w.WriteHeader(http.StatusTeapot)
	})
	signature := "X-Sig: sha256=" + strings.Repeat("0", 64) + "\r\n"
	for path, c := range map[string]struct {
		more, want string
	}{
		"/webhooks/a/b":      {"", "/webhooks/a/b 0"},
		"/webhooks//b":       {"", "/webhooks//b 0"},
		"/webhooks/a/../b":   {"", "/webhooks/a/../b 0"},
		"/webhooks":          {"", "/webhooks 0"},
		"/webhooks/":         {"", "/webhooks/ 0"},
		"/webhooks/many":     {strings.Repeat(signature, 100), "/webhooks/many 100"},
		"/webhooks/long":     {"X-Sig: " + strings.Repeat(signature[7:78]+",", 100) + "\r\n", "/webhooks/long 1"},
		"/webhooks/%2e%2e/a": {"", "/webhooks/../a 0"},
	} {
		connection := s.send(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n"+c.more+"\r\n")
		answer, err := io.ReadAll(connection)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 418 ") || !strings.Contains(string(answer), "\r\nSaw: "+c.want+"\r\n") {
			t.Errorf("%s: %.200q, %v", path, answer, err)
		}
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestEndlessBodyIsCutOff: a body that never comes, wherever it is sent to, a header
// that never ends, one that is too large, and a connection that says nothing while
// hundreds of others do the same.
func TestEndlessBodyIsCutOff(t *testing.T) {
	t.Parallel()
	s := serveWebhooks(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for what, c := range map[string]struct{ request, answer string }{
		"a body to /healthz":      {"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", "HTTP/1.1 405 "},
		"a body in a GET":         {"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345", "HTTP/1.1 200 "},
		"a body to /readyz":       {"GET /readyz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n1", "HTTP/1.1 200 "},
		"a body to nowhere":       {"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", "HTTP/1.1 404 "},
		"a header that is large":  {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"a header of many values": {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 4<<10) + "\r\n", "HTTP/1.1 431 "},
	} {
		// Until it is closed: nobody waits for what does not come.
		answer, err := io.ReadAll(s.send(t, c.request))
		if err != nil || !strings.HasPrefix(string(answer), c.answer) {
			t.Errorf("%s: %.100q, %v", what, answer, err)
		}
	}
	first := s.send(t, "GET /healthz HTTP/1.1\r\nHost: ")
	for range 600 {
		s.send(t, "")
	}
	if answer, _ := io.ReadAll(first); len(answer) > 0 {
		t.Errorf("half a header is answered with %q", answer)
	}
	response, err := http.Get("http://" + s.address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// TestServerLogsToTheConfiguredLogger: what Go's server has to say comes as lines of our log.
func TestServerLogsToTheConfiguredLogger(t *testing.T) {
	t.Parallel()
	s := serveWebhooks(t, func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	_, _ = io.ReadAll(s.send(t, "POST /webhooks/a/b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"))
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	found := false
	for _, line := range s.logs.All() {
		found = found || strings.Contains(line.Message, "on purpose")
	}
	if !found {
		t.Errorf("the log says nothing of a panic: %v", s.logs.All())
	}
}

// TestHealthNamesStalledLoops, logs them once, and is well again when they go on.
func TestHealthNamesStalledLoops(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	var hung error
	handler := service.LifeHandler(func() error { return hung }, zap.New(core))
	for _, c := range []struct {
		hung   error
		status int
	}{{nil, 200}, {errors.New("the relay has not gone round for 5m0s"), 503}, {errors.New("the relay has not gone round for 5m10s"), 503}, {nil, 200}} {
		hung = c.hung
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if answer.Code != c.status || c.hung != nil && !strings.Contains(answer.Body.String(), c.hung.Error()) {
			t.Errorf("/healthz answers %d %s, want %d", answer.Code, answer.Body, c.status)
		}
	}
	if all := logs.All(); len(all) != 2 || all[0].Level != zap.ErrorLevel || !strings.Contains(fmt.Sprint(all[0].ContextMap()), "the relay has not") || all[1].Message != "every loop goes round again" {
		t.Errorf("the log says %v", all)
	}
}

// TestHealthCheckIsLoggedAtDebug only, with the status of its answer.
func TestHealthCheckIsLoggedAtDebug(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	handler := service.LifeHandler(func() error { return errors.New("hung") }, zap.New(core))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/healthz", nil))
	lines := logs.FilterMessage("request served").All()
	if len(lines) != 1 || lines[0].Level != zap.DebugLevel {
		t.Fatalf("the log says %v", logs.All())
	}
	if served, ok := lines[0].ContextMap()["httpRequest"].(map[string]any); !ok || served["status"] != http.StatusServiceUnavailable || served["requestUrl"] != "/healthz" {
		t.Errorf("the line has %v", lines[0].ContextMap())
	}
}

// TestReadinessReportsItsAge, and asks nobody anew for ten seconds.
func TestReadinessReportsItsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		handler := service.HealthHandler(func(context.Context) error { asked++; return nil }, nil, zap.NewNop())
		for second := range 25 {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if want := fmt.Sprintf("ready\nchecked %ds ago\n", second%10); answer.Body.String() != want || answer.Header().Get("Age") != fmt.Sprint(second%10) {
				t.Errorf("after %d s: %s, want %s (Age %s)", second, answer.Body, want, answer.Header().Get("Age"))
			}
			<-time.After(time.Second)
		}
		if asked != 3 {
			t.Errorf("in 25 s %d checks, want 3", asked)
		}
	})
}

// TestReadinessLogsEachCause (I19), and each once, however often it is asked for.
func TestReadinessLogsEachCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		var why error
		handler := service.HealthHandler(func(context.Context) error { return why }, nil, zap.New(core))
		for _, cause := range []string{"no answer", "a right is missing", "no answer"} {
			why = errors.New(cause)
			for range 200 {
				<-time.After(2 * time.Second) // an answer holds for one
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil))
			}
			if said := logs.TakeAll(); len(said) != 1 || said[0].ContextMap()["error"] != cause {
				t.Errorf("of %q the log says %v", cause, said)
			}
		}
	})
}
