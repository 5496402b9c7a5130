package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

var (
	shellBlock   = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")
	shellUses    = regexp.MustCompile(`\$\{?([A-Z][A-Z_]+)`)
	shellSets    = regexp.MustCompile(`\b([A-Z][A-Z_]+)=`)
	deployPath   = regexp.MustCompile(`deploy/[A-Za-z0-9_./$-]+`)
	kubernetesIs = regexp.MustCompile(`\b(?:deployment|job)/([a-z-]+)`)
	terraformIs  = regexp.MustCompile(`-target=([a-z0-9_]+)\.([a-z_]+)`)
	outputIs     = regexp.MustCompile(`\boutput ([a-z_]+)`)
	imageIs      = regexp.MustCompile(`\S+-docker\.pkg\.dev/[^"\s]+:[^"\s]+`)
)

// readers are variables whose values the reader of a page has.
var readers = []string{"GITHUB_SECRET"}

// checkPages checks the commands of the pages that lead through a deployment.
func checkPages(r *Report, t tree, m *module, programs []Program) {
	for _, page := range []string{"docs/deploy-cloud-run.md", "docs/deploy-gke.md"} {
		text := t.read(r, page)
		if !strings.Contains(text, "have never run in a real") {
			r.problem(page, "it does not say that its files were never run in a real cloud")
		}
		var set []string
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				r.count("lines")
				for _, sets := range shellSets.FindAllStringSubmatch(line, -1) {
					set = append(set, sets[1])
				}
				checkLineOfPage(r, t, m, page, line, set, programs)
			}
		}
	}
}

func checkLineOfPage(r *Report, t tree, m *module, page, line string, set []string, programs []Program) {
	for _, uses := range shellUses.FindAllStringSubmatch(line, -1) {
		if !slices.Contains(set, uses[1]) && !slices.Contains(readers, uses[1]) {
			r.problem(page, "nothing has set %s: %s", uses[1], line)
		}
	}
	for _, path := range deployPath.FindAllString(line, -1) {
		if _, err := os.Stat(t.path(path)); err != nil && !strings.Contains(path, "$") && !strings.HasSuffix(path, "/terraform.tfvars") {
			r.problem(page, "there is no %s: %s", path, line)
		}
	}
	for _, is := range kubernetesIs.FindAllStringSubmatch(line, -1) {
		if !slices.ContainsFunc(programs, func(p Program) bool {
			return strings.HasPrefix(p.Where, "deploy/gke/") && strings.Contains(p.Where, " "+is[1]+" ")
		}) {
			r.problem(page, "deploy/gke makes no %s", is[0])
		}
	}
	for _, is := range terraformIs.FindAllStringSubmatch(line, -1) {
		if m.resources[is[1]][is[2]] == nil {
			r.problem(page, "deploy/terraform has no %s.%s", is[1], is[2])
		}
	}
	for _, is := range outputIs.FindAllStringSubmatch(line, -1) {
		if m.outputs[is[1]] == nil {
			r.problem(page, "deploy/terraform has no output %s", is[1])
		}
	}
	pushed := parse(page, line, nil)
	for _, image := range imageIs.FindAllString(strings.Join(pushed.words, " "), -1) {
		if len(programs) > 0 && image != programs[0].Image {
			r.problem(page, "it makes the image %s, and the programs run %s", image, programs[0].Image)
		}
	}
	for _, c := range piped(pushed) {
		if c.has("gcloud") {
			checkGcloud(r, c)
		}
	}
}

// piped are the commands of a line: those of a pipe, and one in $(…).
func piped(line command) (all []command) {
	next := command{where: line.where}
	for _, word := range line.words {
		if slices.Contains([]string{"|", "&", "&&", "<", ">", ";"}, word) {
			all, next = append(all, next), command{where: line.where}
			continue
		}
		if _, inner, ok := strings.Cut(word, "$("); ok {
			word, next = inner, command{where: line.where}
		}
		next.words = append(next.words, strings.TrimRight(word, ";)"))
	}
	return append(all, next)
}
