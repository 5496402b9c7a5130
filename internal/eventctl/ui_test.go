package eventctl

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestUIOpensTheDashboardForThisMachineOnly opens the dashboard as a browser does, and as a page of the web would whose name leads to this machine.
func TestUIOpensTheDashboardForThisMachineOnly(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.run("ui", "--listen", "0.0.0.0:0").is(exitBadInput, "", "is not a loopback address with a port")
	c.run("ui", "--listen", "here").is(exitBadInput, "", "write it like 127.0.0.1:8700")
	for _, flag := range []string{"--read-only", "--no-notify"} {
		openUI(c, flag)
	}
}

func openUI(c *cli, flag string) {
	t := c.t
	t.Helper()
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan result, 1)
	go func() {
		var stderr bytes.Buffer
		status := Run(ctx, []string{"ui", flag}, c.env, strings.NewReader(""), in, &stderr)
		_ = in.Close()
		ended <- result{t, status, "", stderr.String()}
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it says %q, %v: %+v", url, err, <-ended)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, want := range map[string]int{"": http.StatusOK, "localhost:80": http.StatusOK, "evil.example:80": http.StatusMisdirectedRequest, "evil.example": http.StatusMisdirectedRequest} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(url), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		canPause := bytes.Contains(page, []byte("os:")) // who came in
		if err != nil || response.StatusCode != want || want == http.StatusOK && !canPause || want == http.StatusOK && !bytes.Contains(page, []byte("<h1>Overview</h1>")) {
			t.Errorf("as host %q it is answered with %d, %v: %.300s", host, response.StatusCode, err, page)
		}
	}
	stop()
	(<-ended).is(exitOK, "", "")
}
