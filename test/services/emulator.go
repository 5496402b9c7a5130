package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	emulatorHostVariable = "PUBSUB_EMULATOR_HOST"

	emulatorHelp = "install the Google Cloud CLI with its component pubsub-emulator and a Java runtime, start Docker, or set PUBSUB_EMULATOR_HOST to host:port"
)

var errPortTaken = errors.New("the port is taken")

// Emulator returns an official Pub/Sub emulator that answers: the one of
// PUBSUB_EMULATOR_HOST, else that of an installed gcloud, else one in a
// container. It blocks until the emulator answers, two minutes at most beside the
// time to pull an image, or until ctx ends. Safe for concurrent use; every call
// that has to start an emulator starts another one. The option Durable means
// nothing to it: the emulator keeps everything in memory.
func Emulator(ctx context.Context, options ...Option) (*Service, error) {
	s := newSettings(options)
	if host, ok := s.named(emulatorHostVariable); ok {
		if err := pingEmulator(ctx, host); err != nil {
			return nil, fmt.Errorf("the Pub/Sub emulator that %s names does not answer at %s: %w: start it, or unset %s to have one started",
				emulatorHostVariable, host, err, emulatorHostVariable)
		}
		return &Service{URL: host, Origin: emulatorHostVariable}, nil
	}
	script, missing := s.emulatorBin(ctx)
	if missing == "" {
		service, err := emulatorFromGcloud(ctx, script)
		if err != nil {
			return nil, fmt.Errorf("start the Pub/Sub emulator %s: %w", script, err)
		}
		return service, nil
	}
	if err := s.docker(ctx); err != nil {
		return nil, fmt.Errorf("the Pub/Sub emulator was %w: %s is not set, %s, and Docker does not answer (%w): %s",
			ErrNotFound, emulatorHostVariable, missing, err, emulatorHelp)
	}
	service, err := emulatorFromImage(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("start the Pub/Sub emulator with Docker: %w: %s", err, emulatorHelp)
	}
	return service, nil
}

// findEmulator asks gcloud for the emulator's start script, or says what is
// missing.
func findEmulator(ctx context.Context) (path, missing string) {
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		return "", "there is no gcloud on PATH"
	}
	root, err := exec.CommandContext(ctx, gcloud, "info", "--format=value(installation.sdk_root)").Output()
	if err != nil {
		return "", fmt.Sprintf("gcloud does not say where it is installed (%v)", err)
	}
	path = filepath.Join(strings.TrimSpace(string(root)), "platform", "pubsub-emulator", "bin", "cloud-pubsub-emulator")
	if _, err := exec.LookPath(path); err != nil {
		return "", "gcloud has no component pubsub-emulator"
	}
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("JAVA_HOME") == "" {
		return "", "gcloud has the emulator, but there is no java on PATH for it to run on"
	}
	return path, ""
}

// emulatorFromGcloud starts the emulator's own script, which turns into Java.
func emulatorFromGcloud(ctx context.Context, script string) (*Service, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	h, err := newHome("", "emulator", nil, nil)
	if err != nil {
		return nil, err
	}
	e := &emulator{home: h, script: script}
	pid, err := e.create(ctx)
	if err != nil {
		return nil, errors.Join(err, h.remove(context.WithoutCancel(ctx)))
	}
	return &Service{
		URL:     e.host(),
		Origin:  "gcloud's " + script,
		PID:     pid,
		stop:    h.remove,
		restart: e.restart,
	}, nil
}

// emulator is an emulator of our own.
type emulator struct {
	home   *home
	script string
	port   int
}

func (e *emulator) host() string { return net.JoinHostPort(loopback, strconv.Itoa(e.port)) }

// create starts the emulator on a free port and returns its process.
func (e *emulator) create(ctx context.Context) (pid int, err error) {
	for range startAttempts {
		if e.port, err = freePort(); err != nil {
			return 0, err
		}
		pid, err = e.start(ctx)
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return pid, err
}

// restart starts the emulator anew on its port. It comes up empty.
func (e *emulator) restart(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	e.home.last.kill()
	return e.start(ctx)
}

// start waits until the emulator itself says that it listens on the port, since
// another server may answer there, and then for its answer.
func (e *emulator) start(ctx context.Context) (int, error) {
	seen := len(e.home.log())
	p, err := e.home.run("TERM", e.script, "--host="+loopback, "--port="+strconv.Itoa(e.port))
	if err != nil {
		return 0, err
	}
	var taken bool
	err = poll(ctx, p.exited, func(ctx context.Context) error {
		said := e.home.log()[seen:]
		if strings.Contains(said, "java.net.BindException") {
			taken = true // it would hang there for ever
			return nil
		}
		if !strings.Contains(said, "listening on "+strconv.Itoa(e.port)) {
			return errors.New("it does not listen yet")
		}
		return pingEmulator(ctx, e.host())
	})
	if err == nil && taken {
		err = errPortTaken
	}
	if err != nil {
		p.kill()
		return 0, fmt.Errorf("%w; its last words:\n%s", err, e.home.logTail())
	}
	return p.pid, nil
}

// pingEmulator asks for the page that the emulator serves on the port of its
// gRPC service.
func pingEmulator(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		return fmt.Errorf("%q is not host:port: %w", host, err)
	}
	// The transport lets a dial outlive its request; this one ends with ctx.
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with HTTP status %s where the emulator says 200", response.Status)
	}
	return nil
}
