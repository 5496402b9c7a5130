package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// command is one command of a script, with its variables filled in.
type command struct {
	where string
	words []string
}

// flag returns the value of a flag --name=value.
func (c command) flag(name string) (value string, found bool) {
	for _, word := range c.words {
		if value, ok := strings.CutPrefix(word, "--"+name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// has reports whether the command begins with these words.
func (c command) has(words ...string) bool {
	return len(c.words) >= len(words) && slices.Equal(c.words[:len(words)], words)
}

var (
	shellFor  = regexp.MustCompile(`^for (\w+) in (.*); do$`)
	shellWord = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)
)

// commands takes a script apart that is made of commands and of loops over words. It knows no more of the shell.
func commands(r *Report, where, script string) (all []command) {
	defer func() {
		for _, c := range all {
			if c.has("gcloud") {
				checkGcloud(r, c)
			}
		}
	}()
	script = strings.ReplaceAll(script, "\\\n", " ")
	var variable string
	var over, inside []string
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		loop := shellFor.FindStringSubmatch(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case loop != nil:
			variable, over, inside = loop[1], strings.Fields(loop[2]), nil
		case line == "done":
			for _, value := range over {
				for _, text := range inside {
					all = append(all, parse(where, text, map[string]string{variable: value}))
				}
			}
			over = nil
		case over != nil:
			inside = append(inside, line)
		default:
			all = append(all, parse(where, line, nil))
		}
	}
	return all
}

// parse splits a line into words, and fills in what a deployment sets.
func parse(where, line string, also map[string]string) command {
	line = os.Expand(line, func(name string) string {
		name, _, _ = strings.Cut(name, ":") // ${NAME:?}
		for _, known := range []map[string]string{also, {"PROJECT_ID": exampleProject, "REGION": exampleRegion, "TAG": exampleTag}} {
			if value, ok := known[name]; ok {
				return value
			}
		}
		return "$" + name
	})
	words := shellWord.FindAllString(line, -1)
	for i, word := range words {
		words[i] = strings.NewReplacer(`"`, "", `'`, "").Replace(word)
	}
	return command{where, words}
}

// gcloudFlags are the commands of gcloud that deploy/ and its pages use, and the flags that each may have here.
var gcloudFlags = map[string]string{
	"artifacts repositories create":               "location repository-format",
	"auth application-default login":              "",
	"auth configure-docker":                       "",
	"auth login":                                  "",
	"container clusters create-auto":              "region",
	"container clusters get-credentials":          "region",
	"iam service-accounts add-iam-policy-binding": "member role",
	"iam service-accounts create":                 "display-name",
	"logging read":                                "freshness limit",
	"projects add-iam-policy-binding":             "member role condition",
	"pubsub subscriptions add-iam-policy-binding": "member role",
	"pubsub subscriptions create":                 "topic ack-deadline message-retention-duration expiration-period",
	"pubsub topics add-iam-policy-binding":        "member role",
	"pubsub topics create":                        "",
	"run jobs execute":                            "region wait",
	"run jobs replace":                            "region",
	"run services add-iam-policy-binding":         "region member role",
	"run services describe":                       "region format",
	"run services replace":                        "region",
	"run worker-pools replace":                    "region",
	"run worker-pools update":                     "region instances",
	"secrets add-iam-policy-binding":              "member role",
	"secrets create":                              "replication-policy",
	"secrets versions access":                     "secret",
	"secrets versions add":                        "data-file",
	"services enable":                             "",
	"sql databases create":                        "instance",
	"sql instances create":                        "region database-version edition tier availability-type database-flags connector-enforcement ssl-mode storage-auto-increase backup enable-point-in-time-recovery deletion-protection",
	"sql users create":                            "instance type password",
}

// checkGcloud checks a command of gcloud by its name and its flags.
func checkGcloud(r *Report, c command) {
	r.count("gcloud")
	var name []string
	for _, word := range c.words[1:] {
		if strings.HasPrefix(word, "-") || gcloudFlags[strings.Join(name, " ")] != "" {
			break
		}
		if _, complete := gcloudFlags[strings.Join(name, " ")]; complete {
			break
		}
		name = append(name, word)
	}
	allowed, known := gcloudFlags[strings.Join(name, " ")]
	if !known {
		r.problem(c.where, "the checker does not know %q", strings.Join(c.words, " "))
		return
	}
	project := false
	for _, word := range c.words {
		flag, is := strings.CutPrefix(word, "--")
		if !is {
			continue
		}
		flag, value, _ := strings.Cut(flag, "=")
		switch {
		case flag == "project":
			project = value == exampleProject
		case !slices.Contains(strings.Fields(allowed), flag):
			r.problem(c.where, "gcloud %s has no flag --%s here", strings.Join(name, " "), flag)
		}
	}
	if !project && !c.has("gcloud", "projects") && !c.has("gcloud", "auth") {
		r.problem(c.where, "gcloud %s does not say the project", strings.Join(name, " "))
	}
}
