package services

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// topic asks the emulator for something about a topic and returns the status.
func topic(t *testing.T, method, host string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(deadline(t), method, "http://"+host+"/v1/projects/test/topics/bell", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

func TestEmulatorIsFoundInGcloud(t *testing.T) {
	t.Parallel()
	unlessAvailable(t, "emulator")
	ctx := deadline(t)
	service, err := Emulator(ctx, Private())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := service.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if !processIsGone(service.PID) {
			t.Errorf("process %d is still there", service.PID)
		}
	}()
	if put, get := topic(t, http.MethodPut, service.URL), topic(t, http.MethodGet, service.URL); put != http.StatusOK || get != http.StatusOK {
		t.Errorf("making a topic answers %d and reading it %d", put, get)
	}
	named, err := Emulator(ctx, func(s *settings) { s.getenv = environment(emulatorHostVariable, service.URL) })
	if err != nil || named.Origin != emulatorHostVariable || named.URL != service.URL {
		t.Errorf("got %+v, %v", named, err)
	}
	if err := service.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if get := topic(t, http.MethodGet, service.URL); get != http.StatusNotFound {
		t.Errorf("the topic answers %d after the emulator was restarted, want it to be forgotten", get)
	}
}

func TestEmulatorAvoidsATakenPort(t *testing.T) {
	t.Parallel()
	unlessAvailable(t, "emulator")
	ctx := deadline(t)
	script, _ := findEmulator(ctx)
	h, err := newHome("", "test", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &emulator{home: h, script: script, port: occupied(t)}
	if _, err := e.start(ctx); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want errPortTaken", err)
	}
	if err := h.remove(ctx); err != nil {
		t.Error(err)
	}
}
