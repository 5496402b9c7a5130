# The two commands for a newcomer are: make demo, make test.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The version in go.mod is fetched when the installed Go is older.
export GOTOOLCHAIN := auto
export GOFLAGS := -buildvcs=false

BIN := $(CURDIR)/bin
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
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

# Most tests wait for a database, a container or a clock, so more of them run at once than
# there are processors. make lint has vetted the code; nobody debugs these binaries.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# RERUN=2 tries a test that failed beside the others again, alone, twice at most. The run passes if it does then,
# and reports it, for such a test is to be mended: load moves it. CI judges a change by it and not by its machine.
# What a second run says nothing about fails all the same (test/reruns): a goroutine that was left behind, a process
# that ended, input that was drawn.
RERUN ?=
RERUNS := $(BIN)/reruns
RERUN_FLAGS = $(if $(RERUN),--rerun-fails=$(RERUN) --rerun-fails-max-failures=5 --rerun-fails-run-root-test \
	--rerun-fails-abort-on-data-race --jsonfile="$(RERUNS)/$(1).json")
# Called with a name for its report, packages, and more flags of go test.
run_tests = $(GOTESTSUM) --format pkgname --format-hide-empty-pkg $(call RERUN_FLAGS,$(1)) --packages="$(2)" -- -shuffle=on -count=1 -timeout 30m \
	-p $$(($(PROCESSORS) + 2)) -parallel 8 -vet=off -ldflags='-s -w' $(3)
# These start other programs and read what they say, or compare stores one operation after the other:
# the race detector would see nothing but the test itself. Compiling for it costs most of what they cost.
WITHOUT_RACE := ./test/model ./test/containers ./test/setmodule ./test/walls ./test/services ./test/withservices ./test/mutants ./test/up
# They start in this order, so that nothing long is left over at the end.
LONGEST := ./test/e2e ./eventqueue/pgstore ./test/protocol ./test/sim
.PHONY: test
test: services pooler chromium $(GOTESTSUM) $(GOLANGCI) ## everything, on real Postgres and the Pub/Sub emulator; ends with what was skipped
	@rm -rf "$(RERUNS)" && mkdir -p "$(RERUNS)"
	@go run ./test/withservices -- $(MAKE) --no-print-directory --keep-going -j2 test-race test-plain
	@cd bench && $(call run_tests,bench,./...)
	@cd test/attack && $(call run_tests,attack,./...)
	@cd test/deploycheck && $(call run_tests,deploycheck,./...)
	@$(if $(RERUN),go run ./test/reruns "$(RERUNS)")

# The services run already, so that no test needs the client of a container engine.
.PHONY: test-race
test-race:
	@$(call run_tests,race,$(LONGEST) $$(go list ./... | grep -vxF "$$(go list $(WITHOUT_RACE))" | tr '\n' ' '),-race -tags=nodocker -gcflags=all=-dwarf=false)

# The simulation is here as well: it has five times as many runs in the same time.
.PHONY: test-plain
test-plain:
	@$(call run_tests,plain,$(WITHOUT_RACE) ./test/sim)

PICTURES ?=
.PHONY: browser
browser: services chromium ## the dashboard in a real browser; PICTURES=directory for a picture of each page
	@cd test/attack && go test -c -o $(BIN)/browser.test ./browser
	@cd test/attack/browser && $(BIN)/browser.test $(if $(PICTURES),-pictures "$(abspath $(PICTURES))")

SEED ?= 1
SEEDS ?= 300
.PHONY: sim
sim: ## the real code against a simulated world, in virtual time; SEEDS=2000 for more
	@go run ./test/sim/simulate -seeds $(SEEDS) -first $(SEED)

SEQUENCES ?= 20000
.PHONY: model
model: services ## the store in memory against Postgres; SEQUENCES of 50 operations each
	@go run ./test/withservices -- go test ./test/model -count=1 -timeout 3h -v -run EqualsSQL -args -sequences $(SEQUENCES)

.PHONY: mutants
mutants: services pooler ## every wrong change of the protocol is noticed by a test
	@go run ./test/mutants

MINUTES ?= 5
.PHONY: chaos
chaos: services ## a whole deployment attacked for MINUTES; says what was lost
	@cd test/attack && go run ./chaos -minutes $(MINUTES) -seed $(SEED)

ONLY ?=
.PHONY: faults
faults: services pooler ## each named fault against the programs as deployed; ONLY=name for one
	@cd test/attack && go run ./faults -only "$(ONLY)"

# What a skipped test has not tested is said as well; the last line has the counts.
.PHONY: deploy-check
deploy-check: services ## the files in deploy/ against the APIs of the cloud and the programs, and the alerts, without a cloud
	@set -o pipefail; go test ./test/deploy -count=1 -v | { grep -v '^=== ' || true; }
	@cd test/deploycheck && go test ./... -count=1
	@cd test/deploycheck && go run .

EVENTS ?= 1000000
.PHONY: scale
scale: services ## what each page of the dashboard and each read of the API costs with a million EVENTS
	@go run ./test/withservices -- go test ./test/scale -count=1 -timeout 2h -events $(EVENTS)

HOURS ?= 1
.PHONY: soak
soak: services ## a deployment at a steady rate with a fault a minute for HOURS; says what grows
	@cd test/attack && go run ./soak -hours $(HOURS)

ROUNDS ?= 3
.PHONY: bench
bench: services ## the queue beside River, in ROUNDS; writes docs/benchmarks.md and its chart
	@cd bench && go run . -rounds $(ROUNDS) -write ../docs

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

.PHONY: build
build: VERSION = $(shell git describe --tags --dirty 2>/dev/null)
build: REVISION = $(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null)
build: ## static binaries of worker, cron and eventctl in bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/ \
		-ldflags "-X $$(go list -m)/internal/buildinfo.version=$(VERSION) -X $$(go list -m)/internal/buildinfo.revision=$(REVISION)" ./cmd/...

.PHONY: lint
lint: $(GOLANGCI) ## the linters; they also hold the direction of dependencies
	go vet ./...
	go mod tidy -diff
	$(GOLANGCI) run --allow-parallel-runners ./...
	cd bench && go vet ./...
	cd bench && go mod tidy -diff
	cd bench && $(GOLANGCI) run --allow-parallel-runners ./...
	cd test/attack && go vet ./...
	cd test/attack && go mod tidy -diff
	cd test/attack && $(GOLANGCI) run --allow-parallel-runners ./...
	cd test/deploycheck && go vet ./...
	cd test/deploycheck && go mod tidy -diff
	cd test/deploycheck && $(GOLANGCI) run --allow-parallel-runners ./...

$(GOLANGCI):
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

$(GOTESTSUM):
	GOBIN=$(BIN) go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(BIN)/gotestsum $@

.PHONY: golden
golden: services ## write the golden files anew; read the difference before you commit it
	go test ./eventqueue/machine ./internal/setup ./internal/eventctl ./test/walls -update
	cd bench && go test ./report -update
	go run ./test/withservices -- go test ./eventqueue/worker -run TestScenarios -rewrite

# Postgres comes from the first that is there: DATABASE_URL, binaries, Docker. On
# Debian and Ubuntu as root the distribution's package is installed when there is
# neither.
.PHONY: services
services:
	@test/install-postgres

# PgBouncer, as root on Debian and Ubuntu, for tests of poolers only.
.PHONY: pooler
pooler:
	@test/install-pgbouncer

# Chromium, as root on Debian and Ubuntu, for the tests of the dashboard only.
.PHONY: chromium
chromium:
	@test/install-chromium
