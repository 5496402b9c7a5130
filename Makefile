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
demo: services ## run a real queue on this machine for half a minute; INPUT=file.ndjson for your own events
	@go run ./test/demo -input "$(INPUT)"

.PHONY: test
test: services $(GOTESTSUM) ## everything, on real Postgres and the Pub/Sub emulator; ends with what was skipped
	@go run ./test/withservices -- $(GOTESTSUM) --format pkgname --format-hide-empty-pkg -- \
		-race -shuffle=on -count=1 -timeout 30m ./...

.PHONY: mutants
mutants: services ## every wrong change of the protocol is noticed by a test
	@go run ./test/mutants

.PHONY: build
build: ## static binaries of worker, cron and eventctl in bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/...

.PHONY: lint
lint: $(GOLANGCI) ## the linters; they also hold the direction of dependencies
	go vet ./...
	go mod tidy -diff
	$(GOLANGCI) run --allow-parallel-runners ./...

$(GOLANGCI):
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

$(GOTESTSUM):
	GOBIN=$(BIN) go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(BIN)/gotestsum $@

.PHONY: golden
golden: services ## write the golden files anew; read the difference before you commit it
	go test ./eventqueue/machine ./internal/service -update
	go run ./test/withservices -- go test ./eventqueue -run TestScenarios -rewrite

# Postgres comes from the first that is there: DATABASE_URL, binaries, Docker. On
# Debian and Ubuntu as root the distribution's package is installed when there is
# neither.
.PHONY: services
services:
	@test/install-postgres
