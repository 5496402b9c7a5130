# The two commands for a newcomer are: make demo, make test.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The version in go.mod is fetched when the installed Go is older.
export GOTOOLCHAIN := auto
# One way to compile for the linters, the programs, and whatever tests build, so that each package is compiled once; and
# without paths in it, so that a second clone compiles nothing that the first one has.
export GOFLAGS := -buildvcs=false -trimpath
export CGO_ENABLED := 0

BIN := $(CURDIR)/bin
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
GREMLINS_VERSION := v0.6.0
GREMLINS := $(BIN)/gremlins-$(GREMLINS_VERSION)
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM := $(BIN)/gotestsum-$(GOTESTSUM_VERSION)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: services ## run a real queue on this machine for half a minute; INPUT=file.ndjson for your own events, UI=1 to look at it in a browser
# go run, and a shell that waits, would report Ctrl-C as a failure.
	@go build -o $(BIN)/demo ./test/demo && exec $(BIN)/demo $(if $(UI),-ui) -input "$(INPUT)"

HANDLERS ?=
NOTIFIER ?= auto
.PHONY: up
up: services ## a local environment until Ctrl-C: worker, cron, dashboard; HANDLERS=file.yaml for your handlers file, NOTIFIER=postgres or pubsub
	@go build -o $(BIN)/up ./test/up && exec $(BIN)/up -handlers "$(HANDLERS)" -notifier "$(NOTIFIER)"

# Many tests wait for a database, a program or a clock, so two packages of each of two groups run at once on two
# processors, and four tests of each: with more, the processors have no more to do, and each test only waits longer. make lint has vetted the code; nobody debugs these binaries.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
REPORTS ?=
# Called with a name, packages, and more flags of go test.
run_tests = $(GOTESTSUM) --format pkgname --format-hide-empty-pkg $(if $(REPORTS),--jsonfile="$(abspath $(REPORTS))/$(1).json") --packages="$(2)" -- -shuffle=on -count=1 -timeout 40m \
	-p $(PROCESSORS) -parallel 4 -vet=off -tags=nodocker -ldflags='-s -w' $(3)
# These share memory between goroutines. For the others the race detector costs more than it finds.
RACE := ./test/sim ./service ./eventqueue/operate ./eventqueue/worker ./eventqueue ./pubsubnotify ./eventqueue/fallback ./eventqueue/pgnotify \
	./eventqueue/maintenance ./eventqueue/memnotify ./eventqueue/queuetest ./eventqueue/minutes ./eventqueue/httptarget ./cronchecker \
	./dashboard ./access ./otelevents ./webhook ./webhook/received ./internal/lostanswer ./internal/refusal ./internal/rounds ./internal/webserver
# These take minutes and belong to make proof.
PROOF := ./test/containers ./test/mutants ./test/setmodule
# They start in this order, so that nothing long is left over at the end.
LONGEST := ./test/e2e ./eventqueue/pgstore
.PHONY: test
test: $(GOTESTSUM) ## all tests but those of make proof, on real Postgres and the Pub/Sub emulator; REPORTS=directory for what each took
	@test/install postgres pgbouncer chromium prometheus
	@go run ./test/withservices -- $(MAKE) --no-print-directory --keep-going -j2 test-plain test-race test-modules

.PHONY: test-race
test-race:
	@CGO_ENABLED=1 $(call run_tests,race,$(RACE),-race -gcflags=all=-dwarf=false)

.PHONY: test-plain
test-plain:
	@$(call run_tests,plain,$(LONGEST) $$(go list ./... | grep -vxF "$$(go list $(RACE) $(PROOF))" | tr '\n' ' '))

# Modules of their own. That of deploy-check is not among them: it compiles most of Kubernetes.
.PHONY: test-modules
test-modules:
	@cd test/attack && $(call run_tests,attack,./...)
	@cd bench && $(call run_tests,bench,./...)

ONLY ?=
.PHONY: proof
proof: ## what takes hours: mutants, sim, chaos, faults, versions, containers, foreign, soak; ONLY=faults,chaos for some
	@test/proof "$(ONLY)"

.PHONY: proof-sample
proof-sample: ## a few mutants, faults and seeds, drawn from the commit's hash, in four minutes
	@test/proof -sample

PICTURES ?=
IMAGES ?=
.PHONY: browser
browser: services ## the dashboard in a real browser; PICTURES=directory for a picture of each page, IMAGES=1 to renew those of the README
	@test/install chromium
	@cd test/attack && go test -c -o $(BIN)/browser.test ./browser
	@cd test/attack/browser && $(BIN)/browser.test $(if $(PICTURES),-pictures "$(abspath $(PICTURES))") $(if $(IMAGES),-images)

SEED ?= 1
SEEDS ?= 60
TWICE ?=
.PHONY: sim
sim: services ## the real code and its SQL in a simulated world, in virtual time; SEEDS=600 for more, TWICE=20 to compare the traces of some
	@go run ./test/withservices -- go run ./test/sim/simulate -seeds $(SEEDS) -first $(SEED)
	@$(if $(TWICE),go run ./test/withservices -- go run ./test/sim/simulate -seeds $(TWICE) -first $(SEED) -twice)

SAMPLE ?=
.PHONY: mutants
mutants: services ## every wrong change of the protocol is noticed by a test; SAMPLE=40 for some, which SEED draws
	@go test ./test/mutants -count=1
	@go run ./test/mutants -seed $(SEED) $(if $(SAMPLE),-sample $(SAMPLE) -within 300s)

# Decisions without I/O, with tests of their own, and the percentage of changes that these have to notice.
PURE := ./eventqueue/machine:80 ./eventqueue/ratelimit:95 ./internal/backoff:100 ./internal/cause:80 ./internal/refusal:80 ./internal/rounds:80 ./internal/sqlstate:80
.PHONY: mutants-all
mutants-all: mutants $(GREMLINS) ## and all changes of operators and conditions that gremlins makes of the packages without I/O
	@set -e; for package in $(PURE); do $(GREMLINS) unleash --timeout-coefficient 20 --threshold-efficacy $${package#*:} $${package%:*}; done

MINUTES ?= 5
.PHONY: chaos
chaos: services ## a whole deployment attacked for MINUTES; says what was lost
	@cd test/attack && go run ./chaos -minutes $(MINUTES) -seed $(SEED)

.PHONY: faults
faults: services ## each named fault against the programs as deployed; ONLY=name for one, SAMPLE=60s for some, which SEED draws
	@cd test/attack && go run ./faults -only "$(ONLY)" -sample $(or $(SAMPLE),0) -seed $(SEED)

.PHONY: versions
versions: services ## programs of two versions at work on one database, through the migrations
	@cd test/attack && go run ./faults -only two-versions

.PHONY: containers
containers: ## the image, docker-compose.yml, and workers in containers, on images of this machine
	@go test ./test/containers -count=1 -timeout 30m

.PHONY: foreign
foreign: services ## the module under another path, imported by a program of another module
	@go run ./test/withservices -- go test ./test/setmodule -count=1 -timeout 30m

# What a skipped test has not tested is said as well; the last line has the counts.
.PHONY: deploy-check
deploy-check: services ## the files in deploy/ against the APIs of the cloud and the programs, and the alerts, without a cloud
	@set -o pipefail; go test ./test/deploy -count=1 -v | { grep -v '^=== ' || true; }
	@cd test/deploycheck && go test ./... -count=1
	@cd test/deploycheck && go run .

EVENTS ?= 1000000
.PHONY: scale
scale: services ## what each page of the dashboard, each read of the API and each change of many costs with a million EVENTS
	@go run ./test/withservices -- go test ./test/scale -count=1 -timeout 2h -events $(EVENTS)

HOURS ?= 1
.PHONY: soak
soak: services ## chaos at a steady rate with a fault a minute for HOURS; says what grows, too
	@cd test/attack && go run ./chaos -steady -hours $(HOURS) -rate 100 -seed $(SEED)

ROUNDS ?= 3
.PHONY: bench
bench: services ## the queue beside River, in ROUNDS; writes docs/benchmarks.md and its chart
	@cd bench && go run . -rounds $(ROUNDS) -write ../docs

.PHONY: bench-growth
bench-growth: services ## the queue with more workers, events, canvases and time; writes docs/growth.md, unless ONLY=workers,spread names some
	@cd bench && go run . -growth $(if $(ONLY),-only "$(ONLY)",-write ../docs)

.PHONY: bench-smoke
bench-smoke: services ## the counts of the benchmark that are the same on any machine
	@cd bench && go run . -smoke

TIME ?= 1m
.PHONY: fuzz
fuzz: ## every fuzz target for TIME
	@test/fuzz $(TIME)

MODULE ?=
.PHONY: module
module: ## give the module the path MODULE, so that others can import it; docs/install.md
	@go run ./test/setmodule "$(MODULE)"

VERSION ?=
.PHONY: take
take: ## after git fetch: merge VERSION of the original, such as original/main, into a copy with a path of its own; docs/install.md
	@go run ./test/setmodule take "$(VERSION)"

.PHONY: build
build: VERSION = $(shell git describe --tags --dirty 2>/dev/null)
build: REVISION = $(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null)
build: ## static binaries of worker, cron and eventctl in bin/
	go build -o $(BIN)/ -ldflags "-X $$(go list -m)/internal/buildinfo.version=$(VERSION) -X $$(go list -m)/internal/buildinfo.revision=$(REVISION)" ./cmd/...

# golangci-lint has go vet in it. The test has a forbidden import for each of its rules about imports.
.PHONY: lint
lint: $(GOLANGCI) ## the linters; they also hold the direction of dependencies
	@set -e; for dir in . bench test/attack test/deploycheck; do \
		echo "$$dir: go mod tidy, golangci-lint"; (cd $$dir && go mod tidy -diff && $(GOLANGCI) run --allow-parallel-runners ./...); \
	done
	@go test ./test/walls -run TestLinterRefusesForbiddenImports

$(GOLANGCI):
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

$(GREMLINS):
	GOBIN=$(BIN) go install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)
	mv $(BIN)/gremlins $@

$(GOTESTSUM):
	GOBIN=$(BIN) go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(BIN)/gotestsum $@

.PHONY: golden
golden: services ## write the golden files anew; read the difference before you commit it
	go test ./eventqueue/machine ./internal/setup ./internal/eventctl ./test/walls -update
	cd bench && go test ./report -update
	go run ./test/withservices -- go test ./eventqueue/worker -run TestScenariosMatchTheirScripts -rewrite

# Postgres comes from the first that is there: DATABASE_URL, binaries, Docker. On Debian and
# Ubuntu as root the distribution's packages are installed where there is neither.
.PHONY: services
services:
	@test/install postgres pgbouncer
