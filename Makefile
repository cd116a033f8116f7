# Everything needs Go and make; make test also sees to a few small programs (.ci/tools).

GO      ?= go
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT  := mvdan.cc/gofumpt@v0.12.0
VULN     := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# No C compiler is needed, and a checkout that belongs to somebody else still builds.
export CGO_ENABLED ?= 0
export GOFLAGS := $(GOFLAGS) -buildvcs=false

.DEFAULT_GOAL := build
.PHONY: build try test race e2e lint fmt fuzz bench soak check vuln tools clean

build: ## bin/golem
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/golem .

try: build ## plan, apply, plan, destroy on a throw-away tree, and the proof that it came back
	@examples/try.sh bin/golem

tools:
	@.ci/tools

test: tools ## every package, as CI runs it
	$(GO) vet ./...
	$(GO) test -timeout 30m ./...

race: tools ## the same under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

e2e: tools ## only what runs the built binary
	$(GO) test -timeout 30m -v ./e2e/...

lint: ## golangci-lint with .golangci.yml, and gofumpt's layout
	$(GO) run $(GOLANGCI) run ./...
	@left=$$($(GO) run $(GOFUMPT) -l .); test -z "$$left" || { echo "make fmt would change:"; echo "$$left"; exit 1; }

fmt: ## lay out the Go sources and the example scrolls
	$(GO) run $(GOFUMPT) -w .
	$(GO) run . fmt examples/*/

fuzz: ## every fuzz target for a minute
	@grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort -u | sed 's/^func //' | while read -r target; do \
	  for dir in $$(grep -rlE --include='*_test.go' "^func $$target\(" . | xargs -n1 dirname | sort -u); do \
	    echo "== $$target in $$dir"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(or $(FUZZTIME),1m) "$$dir" </dev/null || exit 1; \
	  done; \
	done

bench: ## what golem costs, as ratios to raw system calls measured in the same run
	$(GO) test -run '^$$' -bench . -timeout 30m ./...

soak: tools ## the long versions of the tests: every error at every call, gigabytes, thousands of cases
	GOLEM_SOAK=1 $(GO) test -timeout 80m ./...

check: test lint ## what has to pass before a commit: CI's run, and lint

vuln: ## known vulnerabilities; needs the vulnerability database on the net
	$(GO) run $(VULN) ./...

clean:
	rm -rf bin
