# linrank: everything starts from plain Python (>= 3.10), g++ and make.
# The virtual environment .venv holds linrank itself and every tool used below.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

# The first interpreter that is new enough and can make an environment.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python3.10; do \
    $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
    && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# The tools of the environment (cmake, ninja) come before those of the system.
export PATH := $(CURDIR)/$(BIN):$(PATH)

FUZZ_SECONDS ?= 20
CORPUS := build/corpus
DEMO_DIR ?= demo-report
PYTEST_ARGS ?=
TEST_JOBS ?= 2
BENCH_ARGS ?=
RIVALS ?=
REPRODUCE_ARGS ?=

# What goes into the wheel. The list itself is a prerequisite, so a deleted file rebuilds as well.
SOURCES := $(shell find core bindings src -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu*' -o -name '*.py' -o -name '*.css' \
    -o -name '*.pyi' -o -name 'py.typed' \) 2>/dev/null | LC_ALL=C sort) \
    CMakeLists.txt pyproject.toml README.md LICENSE

.PHONY: help demo wheel test test-all browser databases fuzzers bench reproduce lint docs docs-check stub style sanitize threads arm fuzz explore clean FORCE

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.linrank  ## Train on a small sample, print the tables, write a report
	$(BIN)/python -m linrank.demo $(DEMO_DIR)

wheel: $(VENV)/.wheel  ## Build a wheel for old glibc with zig, tag it, try it in an empty environment: dist/
	$(BIN)/python packaging/build_wheel.py

# CI runs this. pytest comes last, so that its summary is the last thing printed.
test: FUZZ_SECONDS = 2
test: $(VENV)/.linrank $(VENV)/.test style sanitize fuzz  ## Style, types, sanitizers (short), then all tests
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile $(PYTEST_ARGS)

test-all: override PYTEST_ARGS += -m '' --hypothesis-profile=thorough
test-all: test  ## The same with the tests that take minutes, and with many more examples of each law

browser:  ## Install Chromium (Debian, Ubuntu; as root): `make test` then looks at the report in it
	command -v chromium > /dev/null || { apt-get -qq update && \
	    apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core; }

databases:  ## Install PostgreSQL and MariaDB (Debian, Ubuntu; as root): `make test` then runs exported SQL in them
	command -v mariadbd > /dev/null && ls /usr/lib/postgresql/*/bin/postgres > /dev/null 2>&1 || { apt-get -qq update && \
	    apt-get -qq install -y --no-install-recommends postgresql mariadb-server-core mariadb-client-core; }

fuzzers: $(VENV)/.fuzz  ## Install clang (Debian, Ubuntu; as root) and Atheris: for `make explore`
	command -v clang++ > /dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends clang \
	    $$(apt-cache depends clang | sed -n 's/.*Depends: clang-\([0-9]*\)$$/libclang-rt-\1-dev/p'); }

bench: $(VENV)/.linrank $(VENV)/.test  ## Run the benchmarks and print their ratios
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS) $(RIVALS:%=--rivals %)

reproduce: $(VENV)/.linrank $(VENV)/.test  ## Measure the tables and figures of the papers again
	$(BIN)/python reproduce/run.py $(REPRODUCE_ARGS)

lint: style sanitize threads fuzz explore  ## Style, types, the core under ASan + UBSan and TSan, longer fuzz runs

docs: $(VENV)/.linrank $(VENV)/.docs  ## Build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-check: docs $(VENV)/.test  ## Look at every page of the site in Chromium (`make browser`), at desk and phone width
	$(BIN)/python -m pytest -m slow tests/test_site_in_browser.py

stub: $(VENV)/.linrank  ## Regenerate src/linrank/_core.pyi from the built module
	$(BIN)/python -m nanobind.stubgen -q -m linrank._core -o src/linrank/_core.pyi

style: $(VENV)/.linrank $(VENV)/.test $(VENV)/.lint  ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The core alone, warnings as errors, no Python in the process.
CORE := cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DLINRANK_PYTHON=OFF \
    -DLINRANK_CORE_TESTS=ON -DLINRANK_WERROR=ON --log-level=WARNING

sanitize: $(VENV)/.build  ## Build the core with ASan + UBSan, run its C++ tests and the corpora of its fuzzers
	$(CORE) -B build/address -DLINRANK_SANITIZE=address
	cmake --build build/address -- --quiet
	ctest --test-dir build/address --output-on-failure

threads: $(VENV)/.build  ## The same with TSan
	$(CORE) -B build/thread -DLINRANK_SANITIZE=thread
	cmake --build build/thread -- --quiet
	ctest --test-dir build/thread --output-on-failure

arm: $(VENV)/.build  ## Build the core for aarch64, run its C++ tests under qemu (Debian, Ubuntu; as root)
	command -v qemu-aarch64 > /dev/null && command -v aarch64-linux-gnu-g++ > /dev/null || { apt-get -qq update && \
	    apt-get -qq install -y --no-install-recommends g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; }
	$(CORE) -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=packaging/aarch64.cmake -DLINRANK_WERROR=OFF
	cmake --build build/aarch64 -- --quiet
	ctest --test-dir build/aarch64 --output-on-failure

fuzz: sanitize  ## Damage the corpora at random for FUZZ_SECONDS each, under ASan + UBSan
	@set -e; for corpus in $(wildcard tests/core/corpus/*.dict); do \
	    name=$$(basename $$corpus .dict); \
	    build/address/fuzz_$$name $${corpus%.dict} $(FUZZ_SECONDS); \
	done

# What is found stays in build/corpus, for the next run; CONTRIBUTING.md says how to keep the best of it.
explore: $(VENV)/.build $(VENV)/.linrank $(VENV)/.test  ## Fuzz guided by coverage for FUZZ_SECONDS each (after `make fuzzers`)
	@command -v clang++ > /dev/null || echo "explore: the core is skipped: no clang++ (make fuzzers installs it)" >&2
	@! command -v clang++ > /dev/null || { set -e; \
	    $(CORE) -B build/libfuzzer -DLINRANK_SANITIZE=address -DLINRANK_LIBFUZZER=ON -DCMAKE_CXX_COMPILER=clang++; \
	    cmake --build build/libfuzzer --target fuzzers -- --quiet; \
	    for corpus in $(wildcard tests/core/corpus/*.dict); do \
	        name=$$(basename $$corpus .dict); mkdir -p $(CORPUS)/$$name; \
	        build/libfuzzer/fuzz_$$name $(CORPUS)/$$name $${corpus%.dict} $(EXPLORE) -dict=$$corpus; \
	    done; }
	@$(BIN)/python -c 'import atheris' 2> /dev/null || \
	    echo "explore: files that Python reads are skipped: no Atheris (make fuzzers installs it)" >&2
	@! $(BIN)/python -c 'import atheris' 2> /dev/null || { set -e; \
	    for corpus in $(wildcard tests/corpus/*.dict); do \
	        name=$$(basename $$corpus .dict); mkdir -p $(CORPUS)/$$name; \
	        $(BIN)/python tests/explore_files.py $$name $(CORPUS)/$$name $${corpus%.dict} $(EXPLORE) -dict=$$corpus; \
	    done; }
# Short inputs, as many as can be; without the schedule that takes half of the time itself.
EXPLORE = -max_total_time=$(FUZZ_SECONDS) -max_len=256 -entropic=0 -print_funcs=0 -verbosity=0 -print_final_stats=1

clean:  ## Remove everything that make has written
	rm -rf $(VENV) build dist docs/_build docs/reference/generated docs/gallery docs/reproduced $(DEMO_DIR) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# ---- the environment: one stamp for each step, so that nothing is installed twice ----------------

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "make: no Python >= 3.10 with venv found; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "make: making the environment $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install 'pip>=25.1'  # the first one that knows --group
	@touch $@

# Stamps of the dependency groups of pyproject.toml.
DEPENDENCY_GROUPS := build wheel test lint docs fuzz
$(DEPENDENCY_GROUPS:%=$(VENV)/.%): $(VENV)/.%: pyproject.toml $(VENV)/.made
	@echo "make: installing what '$*' needs"
	@$(PIP) install --group $*
	@touch $@

# Without isolation the tools of .venv build linrank: the build folder stays valid between calls.
$(VENV)/.linrank: $(SOURCES) $(VENV)/.sources $(VENV)/.build
	@mkdir -p build
	@echo "make: installing linrank; its core compiles for a minute or two"
	@{ $(BIN)/python -m pip --disable-pip-version-check install -v --no-build-isolation '.[plot]' \
	    || touch build/failed; } 2>&1 | tee build/install.log | sed -un $(STAGES)
	@! rm build/failed 2> /dev/null || { cat build/install.log >&2; exit 1; }
	@touch $@

# Of all that pip tells, what shows a newcomer that it lives; the rest is in build/install.log.
STAGES = -e 's/^Collecting \([A-Za-z0-9_-]*\).*/  fetching \1/p' \
    -e 's|^ *\(\[[0-9]*/[0-9]*\]\) Building.*|  compiled \1|p'

$(VENV)/.sources: FORCE | $(VENV)/.made
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' > $@
