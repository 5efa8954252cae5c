# Needs make and Python 3.11 or 3.12; everything else, a Java runtime included, goes into .venv.
# PYTHON=... picks the interpreter, VENV=... another folder for the environment, SERVERS=... for those
# of the servers that the tests talk to, KAFKA_JARS=... for Kafka's jars, BROWSER=... for the browser that looks
# at pages; CHROMIUM=... names one that is there already. PEERS=... is for the systems that the benchmark compares,
# DOCS=... for what builds the site.

VENV ?= .venv
SERVERS ?= .servers
KAFKA_JARS ?= .kafka
BROWSER ?= .browser
PEERS ?= .peers
DOCS ?= .docs
export SERVERS KAFKA_JARS BROWSER
# The newest interpreter that runs, may make virtual environments, and that PyFlink knows. It is run
# and not only looked up, since a version manager may put names on PATH that lead nowhere.
PYTHON ?= $(shell for name in python3.12 python3.11 python3 python; do \
	"$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' \
	2>/dev/null && { echo "$$name"; break; }; done)
BIN := $(VENV)/bin
STAMP := $(VENV)/.reattach-installed
# Tests run in so many processes: one takes all that starts Flink, in turn, and the others the rest.
WORKERS ?= 2
# Servers of other people, each with what it needs in an environment of its own: tests/servers.
SERVER_STAMPS := $(patsubst %,$(SERVERS)/%/.reattach-installed,langgraph a2a a2a_old)

# Systems of other people, which the benchmark compares, likewise: runtime/bench/peers.
PEER_STAMPS := $(patsubst %,$(PEERS)/%/.reattach-installed,dbos postgres restate flink_agents)
# What is not a Python package: the server of the one, the broker of the other.
FROM_restate = , its server from npm
MORE_restate = npm install --no-audit --no-fund --no-save --prefix $(PEERS)/restate @restatedev/restate-server@1.7.12
# Its package has no jars, and fetches them while pip builds it.
FROM_flink_agents = , its jars from Maven Central
MORE_flink_agents = $(MAKE) --silent kafka && ln -sfn $(abspath $(KAFKA_JARS))/broker $(PEERS)/flink_agents/kafka

.DEFAULT_GOAL := help
.PHONY: help install servers kafka browser test test-only conformance lint format demo bench bench-growth peers bench-peers soak diagram docs wheel clean

help: ## Show what can be made.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with everything for development.

# The version stands in the package, and the installed metadata repeats it.
$(STAMP): pyproject.toml constraints.txt reattach/__init__.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: no Python 3.11 or 3.12 with venv and ensurepip on PATH; name one: make PYTHON=/path/to/python3.12" >&2; \
		exit 1; \
	fi
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@"$(PYTHON)" -m venv $(VENV)

servers: ## Make the environments of the servers that the tests talk to.
	@$(MAKE) --silent --jobs=3 $(SERVER_STAMPS)

# What pip says goes to a file: of its many lines only the error is of use, and three run at once.
$(SERVERS)/%/.reattach-installed: tests/servers/%.txt | $(BIN)/python
	@echo "making $(@D)"
	@$(BIN)/python -m venv --clear --without-pip $(@D)
	@$(BIN)/python -m pip --python $(@D)/bin/python install --disable-pip-version-check --requirement $< \
		>$(@D)/pip.log 2>&1 || { \
		echo "make: $< cannot be installed (is the package index in reach?):" \
			"$$(grep -m 1 ERROR $(@D)/pip.log || tail -n 1 $(@D)/pip.log)" >&2; \
		exit 1; \
	}
	@touch $@

kafka: $(KAFKA_JARS)/.reattach-fetched ## Fetch Kafka's connector and a broker, by coordinates from Maven Central.

# The whole list is read by one process, which takes only what is not there yet.
$(KAFKA_JARS)/.reattach-fetched: tests/kafka/jars.txt tests/kafka/fetch.py | $(BIN)/python
	@echo "fetching $(KAFKA_JARS)"
	@$(BIN)/python tests/kafka/fetch.py $(KAFKA_JARS)
	@touch $@

browser: $(if $(CHROMIUM),,$(BROWSER)/.reattach-fetched) ## Fetch a headless Chromium, which looks at pages in the tests.

$(BROWSER)/.reattach-fetched: tests/view/browser.txt tests/view/fetch.py | $(BIN)/python
	@echo "fetching $(BROWSER)"
	@$(BIN)/python tests/view/fetch.py $(BROWSER)
	@touch $@

test: install servers kafka browser lint ## Run every check: ruff, mypy, and all tests with real processes.
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --cov --cov-report=term --cov-fail-under=100 $(ARGS)

test-only: install servers browser ## Run the tests that ARGS names, without coverage: make test-only ARGS='tests/cli -k config'.
	$(BIN)/python -m pytest $(ARGS)

conformance: install servers ## Ask each adapter and a live server whether the adapter tells the truth.
	$(BIN)/python -m pytest tests/conformance $(ARGS)

lint: install ## Run ruff and mypy.
	$(BIN)/ruff check --extend-exclude $(SERVERS),$(PEERS),$(DOCS) .
	$(BIN)/ruff format --check --extend-exclude $(SERVERS),$(PEERS),$(DOCS) .
	$(BIN)/mypy

format: install ## Rewrite the code as ruff wants it.
	$(BIN)/ruff check --fix --extend-exclude $(SERVERS),$(PEERS),$(DOCS) .
	$(BIN)/ruff format --extend-exclude $(SERVERS),$(PEERS),$(DOCS) .

demo: install ## Kill a job in the middle and count what the server saw, with reattach and without.
	$(BIN)/reattach demo $(ARGS)

bench: install ## Measure this engine, the floor and a naive job, and write docs/performance.md: make bench ARGS='--rounds 5'.
	$(BIN)/reattach bench --page docs/performance.md --chart docs/performance.png $(ARGS)

bench-growth: install ## Measure what calls cost that wait, long messages and RocksDB, and write docs/performance.md. Minutes.
	$(BIN)/reattach bench --growth --calls 4000 --page docs/performance.md $(ARGS)

peers: $(PEER_STAMPS) ## Make the environments of the systems that the benchmark compares, as many as can be had.

# What cannot be had is told in one line and left out; the next time it is tried again.
$(PEERS)/%/.reattach-installed: runtime/bench/peers/%.txt | $(BIN)/python
	@echo "making $(@D)"
	@$(BIN)/python -m venv --clear --without-pip $(@D)
	@if { $(BIN)/python -m pip --python $(@D)/bin/python install --disable-pip-version-check --requirement $< && \
		$(or $(MORE_$*),true); } >$(@D)/install.log 2>&1; then touch $@; else \
		echo "make: skipped $*, which cannot be had (the packages come from the package index$(FROM_$*)):" \
			$$(grep -m 1 -E 'urllib.error|ERROR|not found' $(@D)/install.log || tail -n 1 $(@D)/install.log) >&2; \
	fi

bench-peers: install peers ## Measure other systems at the same work as well: make bench-peers ARGS='--system restate'.
	$(BIN)/reattach bench --peers $(PEERS) $(ARGS)

soak: install ## Kill TaskManagers of a cluster under load: make soak SECONDS=180 SEED=1.
	@$(BIN)/python -m tests.cluster.soak --seconds $(or $(SECONDS),180) --seed $(or $(SEED),1)

diagram: install ## Write the generated parts of the documents again.
	$(BIN)/python -m tests.packaging.generated --write

docs: $(DOCS)/.reattach-installed ## Build the site of the documentation into build/site; a link that leads nowhere fails.
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet
	@echo "built build/site; to search in it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

$(DOCS)/.reattach-installed: tests/packaging/site.txt | $(BIN)/python
	@echo "making $(DOCS)"
	@$(BIN)/python -m venv --clear --without-pip $(DOCS)
	@$(BIN)/python -m pip --python $(DOCS)/bin/python install --quiet --disable-pip-version-check --requirement $<
	@touch $@

wheel: install ## Build the wheel into dist/.
	$(BIN)/python -m build --wheel

clean: ## Remove the environment and everything that was generated.
	rm -rf $(VENV) $(SERVERS) $(PEERS) $(KAFKA_JARS) $(BROWSER) $(DOCS) build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find adapters fsm models reattach runtime tests -name __pycache__ -type d -prune -exec rm -rf {} +
