package containers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eventsv2/access"
)

// testDashboard checks that the dashboard lets in whoever has the token that the log of service access shows, and
// nobody else, and that the token is made once.
func (p *project) testDashboard(ctx context.Context, t *testing.T) {
	t.Helper()
	logged := docker("logs", p.inspect(ctx, t, "access", "{{.Id}}"))
	token := logged.must(ctx, t)
	if !strings.HasPrefix(token, access.Prefix) || strings.ContainsAny(token, " \n") {
		t.Fatalf("the log of access is %q: want a token", token)
	}
	url := "http://" + p.call("port", "dashboard", "8090").must(ctx, t)
	eventually(ctx, t, "the dashboard listens", func(ctx context.Context) error { return get(ctx, url+"/login") })
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/", token, http.StatusOK},
		{"/", "", http.StatusSeeOther}, // to the page for logging in
		{"/v1/workers", token, http.StatusOK},
		{"/v1/workers", "", http.StatusUnauthorized},
		{"/v1/workers", access.Prefix + strings.Repeat("A", 43), http.StatusUnauthorized},
	} {
		if status, body := ask(ctx, t, url+c.path, c.token); status != c.want {
			t.Errorf("%s answers whoever has the token %q with %d, want %d: %.300s", c.path, c.token, status, c.want, body)
		}
	}
	p.call("up", "--detach", "--no-build").must(ctx, t)
	eventually(ctx, t, "another up makes no other token", func(ctx context.Context) error {
		switch log, err := logged.output(ctx); {
		case err != nil:
			return err
		case strings.Count(log, access.Prefix) != 1:
			t.Fatalf("the log of access is %q: want one token", log)
		case !strings.Contains(log, "nothing was created: the token local"):
			return fmt.Errorf("its log is %q", log)
		}
		return nil
	})
}

// testPrometheus checks that worker and cron are scraped, and that each alert is evaluated.
func (p *project) testPrometheus(ctx context.Context, t *testing.T) {
	t.Helper()
	url := "http://" + p.call("port", "prometheus", "9090").must(ctx, t) + "/api/v1/"
	eventually(ctx, t, "worker and cron are scraped", func(ctx context.Context) error {
		var answer struct {
			Data struct {
				ActiveTargets []struct {
					Labels            map[string]string
					Health, LastError string
				}
			}
		}
		if err := read(ctx, t, url+"targets", &answer); err != nil {
			return err
		}
		var up []string
		for _, target := range answer.Data.ActiveTargets {
			if target.Health == "up" {
				up = append(up, target.Labels["instance"])
			}
		}
		slices.Sort(up)
		if !slices.Equal(up, []string{"cron:8080", "worker:8080"}) {
			return fmt.Errorf("the targets are %+v", answer.Data.ActiveTargets)
		}
		return nil
	})
	alerts, err := os.ReadFile(filepath.Join(repository, "deploy", "alerts", "eventsv2.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Count(string(alerts), "- alert: ")
	eventually(ctx, t, "every alert is evaluated", func(ctx context.Context) error {
		var answer struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Type, Health string }
				}
			}
		}
		if err := read(ctx, t, url+"rules", &answer); err != nil {
			return err
		}
		evaluated := 0
		for _, group := range answer.Data.Groups {
			for _, rule := range group.Rules {
				if rule.Type == "alerting" && rule.Health == "ok" {
					evaluated++
				}
			}
		}
		if evaluated != want || want == 0 {
			return fmt.Errorf("%d of %d are: %+v", evaluated, want, answer)
		}
		return nil
	})
}

// read decodes what is answered.
func read(ctx context.Context, t *testing.T, url string, into any) error {
	t.Helper()
	status, body := ask(ctx, t, url, "")
	if status != http.StatusOK {
		return fmt.Errorf("%s answers with %d: %s", url, status, body)
	}
	return json.Unmarshal(body, into)
}

// ask makes a request with a token, or with none, and follows no redirect.
func ask(ctx context.Context, t *testing.T, url, token string) (status int, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}
