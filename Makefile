# Everything a newcomer needs: `make demo` and `make test`. Both set up what they lack: an
# environment in .venv with the Python packages of requirements.lock (for tests also those of
# requirements-tests.lock), and the Rust core built into it. `make help` lists the rest.

# A Python from 3.11 on; name another with `make PYTHON=/path/to/python3.12 demo`.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
VEGA := python/ftlab/html/vega.js.gz
# Where maturin looks for what a wheel installs besides the package.
MAN := ftlab._core.data
OUT := out
DIST := dist
TRACE := traces/phone-mix.csv.gz
# Recorded traces that the project may not ship.
TRACES := $(or $(FTLAB_TRACES),../shared/traces)
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
RUST := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find crates -name target -prune -o \( -name '*.rs' -o -name '*.toml' \) -print)

# Modules that a registry declares; cargo fmt does not find them.
REGISTERED := $(wildcard crates/core/src/host/sched/*.rs crates/core/src/host/arbiter/*.rs crates/core/src/device/sched/*.rs crates/core/src/device/own/*.rs \
	crates/core/src/device/row/*.rs crates/core/src/device/watch/*.rs crates/core/src/device/array/order/*.rs \
	crates/core/src/device/array/order/*/*.rs \
	crates/core/src/ftl/hybrid/*.rs crates/core/src/ftl/gc/*.rs crates/core/src/ftl/map/*.rs \
	crates/core/src/ftl/placement/*.rs \
	crates/trace/src/formats/*.rs)

# One interpreter for every build of the extension, or cargo builds it anew for each.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# No step is silent for more than ten seconds.
ALIVE := bash scripts/alive.sh

.DELETE_ON_ERROR:
.PHONY: help demo test test-rust test-python lint format bench lib install-lib header crash mutants fuzz fuzz-rust fuzz-python soak soak-laws soak-everything soak-oracle soak-calls soak-ends soak-live kernel-order audit docs validation site picture workloads check-workloads lock record dist deb clean

help:
	@echo 'make demo     compare the I/O schedulers on the trace shipped with ftlab; picture in $(OUT)/'
	@echo 'make test     all tests, Rust and Python'
	@echo 'make lint     formatting, lints and types, as CI checks them'
	@echo 'make format   reformat the sources'
	@echo 'make bench    requests per CPU-second of the engine'
	@echo 'make lib      the C library, libftlab.so; make install-lib PREFIX=... installs it with its header'
	@echo 'make pins     compare the results of some 1,000 configurations with those of tests/pins.txt'
	@echo 'make crash    lose power 10,000 times with every FTL (CI: a few hundred times)'
	@echo 'make mutants  change the core in 200 places (N=...), one at a time: do its tests notice?'
	@echo 'make fuzz     200,000 mutated inputs over every reader (CI: 2,000)'
	@echo 'make soak     long campaigns: laws on devices drawn anew; 20,000 configurations; 100,000 sequences of C calls; signals and full disks over every command that writes'
	@echo 'make kernel-order  the order of dispatch of a kernel in a guest, compared with that of its schedulers here (qemu; minutes)'
	@echo 'make audit    licences and known advisories of all dependencies'
	@echo 'make docs     write docs/configuration.md, docs/fields.md, DEVIATIONS.md and python/ftlab/fields.py again, from the code'
	@echo 'make validation  compare ftlab with plain models, public simulators and drives; writes docs/validation.md, docs/drives.md'
	@echo 'make site     the documentation as a web site in $(OUT)/site; every warning is an error'
	@echo 'make picture  draw the pictures of README.md, of getting started and of the explanations again'
	@echo 'make workloads        fit the generators of workloads/ anew (minutes)'
	@echo 'make check-workloads  compare all of them with the published tables'
	@echo 'make lock     choose the versions in the requirements*.lock files anew'
	@echo 'make record   record the shipped trace anew (root, Linux)'
	@echo 'make dist     the wheels and the source distribution, in $(DIST)/'
	@echo 'make deb      Debian packages of the C library, in $(OUT)/deb/'
	@echo 'make clean    remove what was built, the environment included'
	@echo
	@echo 'demo, test, lint and bench set up what they lack. PYTHON=... names the interpreter (3.11 or later).'

demo: $(VENV)/.built $(VEGA)
	@$(BIN)/python -m ftlab.cli.man $(VENV)/share/man/man1
	@$(BIN)/ftlab demo --out $(OUT)

test: test-rust test-python

# The extension module is tested from Python; cargo's default members leave it out. Laws on random devices draw the same
# cases each time, so that a commit that passed passes again; `make soak-laws` draws others.
SEED ?= 1
test-rust: export PROPTEST_RNG_SEED = $(SEED)
test-rust: | require-cargo
	$(ALIVE) 'Rust tests' cargo test --locked
	$(ALIVE) "the example's tests" cargo test --locked --manifest-path examples/rust-policies/Cargo.toml --target-dir target

test-python: $(VENV)/.tests $(VENV)/.built $(VEGA)
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/.tests
	cargo fmt --all --check
	cargo fmt --manifest-path examples/rust-policies/Cargo.toml --check
	rustfmt --check --edition 2024 $(REGISTERED)
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --manifest-path examples/rust-policies/Cargo.toml --target-dir target --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.tests
	cargo fmt --all
	cargo fmt --manifest-path examples/rust-policies/Cargo.toml
	rustfmt --edition 2024 $(REGISTERED)
	$(BIN)/ruff format .

bench: | require-cargo
	cargo run --locked --release --package ftlab-bench

# The C library: its name carries the version of its binary interface, its file also the version of ftlab.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
ABI := $(shell sed -n 's/^const ABI: u32 = \(.*\);/\1/p' crates/capi/build.rs)

lib: | require-cargo
	cargo build --locked --release --package ftlab-capi

install-lib: lib
	install -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(PREFIX)/include'
	install -m 755 '$(or $(CARGO_TARGET_DIR),target)/release/libftlab.so' '$(DESTDIR)$(LIBDIR)/libftlab.so.$(ABI).$(VERSION)'
	ln -sf libftlab.so.$(ABI).$(VERSION) '$(DESTDIR)$(LIBDIR)/libftlab.so.$(ABI)'
	ln -sf libftlab.so.$(ABI) '$(DESTDIR)$(LIBDIR)/libftlab.so'
	install -m 644 crates/capi/include/ftlab.h '$(DESTDIR)$(PREFIX)/include/ftlab.h'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' crates/capi/ftlab.pc.in \
	  > '$(DESTDIR)$(LIBDIR)/pkgconfig/ftlab.pc'

# The packages' changelog follows from the version and the date of release, so that nothing is said twice. Of what lintian
# calls errors the maintainer's address is let through: the project has none yet.
DEB := $(OUT)/deb/ftlab-$(VERSION)
deb: | require-cargo
	@command -v dh >/dev/null || { echo 'make: no debhelper found; on Debian: apt install debhelper' >&2; exit 1; }
	@git ls-files --error-unmatch Makefile >/dev/null 2>&1 || { \
	  echo 'make: the packages are made of the files that git knows: run this in a git checkout' >&2; exit 1; }
	rm -rf $(OUT)/deb
	mkdir -p $(DEB)
	git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory $(DEB)
	cp -r packaging/debian $(DEB)/debian
	printf 'ftlab ($(VERSION)-1) UNRELEASED; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
	  "$$(sed -n 's/^Maintainer: //p' packaging/debian/control)" \
	  "$$(date --utc --rfc-email --date "$$(sed -n 's/^date-released: //p' CITATION.cff)")" > $(DEB)/debian/changelog
	cd $(DEB) && CARGO_TARGET_DIR='$(CURDIR)/target' dpkg-buildpackage --build=binary --no-sign -d
	@command -v lintian >/dev/null || { echo 'make: lintian is not installed; the packages are not checked'; exit 0; }; \
	  lintian --allow-root --fail-on error $(OUT)/deb/*.deb \
	    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog
	@ls -l $(OUT)/deb/*.deb

# A test compares the header with the source.
header: | require-cargo
	FTLAB_HEADER=write cargo test --locked --package ftlab-capi --test header

# A change of structure changes none of the pins; `scripts/pin.py --write` pins what is meant to change.
pins: $(VENV)/.built
	$(BIN)/python scripts/pin.py --check tests/pins.txt

# Each test of crash.rs and hybrid_crash.rs makes this many cuts per FTL and device.
crash: | require-cargo
	FTLAB_CUTS=10000 cargo test --locked --package ftlab-core --test crash --test hybrid_crash -- --nocapture
	FTLAB_CUTS=10000 cargo test --locked --package ftlab-files --test crash -- --nocapture
	FTLAB_CAMPAIGN=2000 cargo test --locked --package ftlab-trace --test everything -- --nocapture power_cuts

# N=0: all of them, for days; a run that is stopped continues next time.
N ?= 200
mutants: | require-python require-cargo
	$(PYTHON) tests/mutants/run.py --sample $(N)

# Long forms of the campaigns that `make test` runs in short forms. Each continues where it stopped
# (out/campaigns), up to the given number of cases; FTLAB_CAMPAIGN_SECONDS ends each earlier.
fuzz: fuzz-rust fuzz-python

fuzz-rust: | require-cargo
	FTLAB_CAMPAIGN=150000 cargo test --locked --package ftlab-trace --test mutated -- --nocapture

fuzz-python: $(VENV)/.tests $(VENV)/.built
	FTLAB_CAMPAIGN=50000 $(BIN)/python -m pytest -q -s tests/python/test_mutated.py

soak: soak-laws soak-everything soak-oracle soak-calls soak-ends soak-live

# The seed of each round is printed; `make test-rust SEED=...` repeats it.
ROUNDS ?= 20
soak-laws: | require-cargo
	@for round in $$(seq $(ROUNDS)); do \
	  seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	  echo "==> Round $$round of $(ROUNDS): SEED=$$seed"; \
	  PROPTEST_RNG_SEED=$$seed cargo test --locked --quiet \
	    --package ftlab-core --package ftlab-config --package ftlab-files \
	    --package ftlab-generator --package ftlab-trace || exit; \
	done

soak-everything: | require-cargo
	FTLAB_CAMPAIGN=20000 cargo test --locked --package ftlab-trace --test everything -- --nocapture everything_with
	FTLAB_CAMPAIGN=50000 cargo test --locked --package ftlab-core --test forged_states -- --nocapture
	FTLAB_CAMPAIGN=1 cargo test --locked --package ftlab-core --test allocations

# Second implementations, on random cases, and closed forms on devices of 4,096 blocks.
soak-oracle: $(VENV)/.tests $(VENV)/.built
	FTLAB_CAMPAIGN=20000 $(BIN)/python -m pytest -q -s tests/python/test_second.py

# 100,000 sequences of calls of the C library.
soak-calls: | require-cargo
	FTLAB_CAMPAIGN=100000 cargo test --locked --package ftlab-capi --test hostile -- --nocapture

soak-ends: $(VENV)/.tests $(VENV)/.built
	FTLAB_CAMPAIGN=1000 $(BIN)/python -m pytest -q -s tests/python/test_ends.py -k half_written

# File systems on the live device (root, /dev/fuse, loop devices), hostile clients, cuts and kills. Hostile clients
# come one campaign at a time, as each measures the memory of the process.
soak-live: $(VENV)/.tests $(VENV)/.built
	FTLAB_CAMPAIGN=100000 cargo test --locked --package ftlab-live --test hostile -- --nocapture --test-threads 1
	FTLAB_CAMPAIGN=20 $(BIN)/python -m pytest -q -s tests/python/test_live_files.py tests/python/test_live.py
	FTLAB_CUTS=1000 cargo test --locked --package ftlab-live --test cuts -- --nocapture --skip random_devices
	FTLAB_CAMPAIGN=2000 cargo test --locked --package ftlab-live --test cuts random_devices -- --nocapture
	FTLAB_CAMPAIGN=1000 $(BIN)/python -m pytest -q -s tests/python/test_live_cuts.py -k 'outlasts or programs or renamed'
	FTLAB_CAMPAIGN=100 $(BIN)/python -m pytest -q -s tests/python/test_live_cuts.py -k 'ext4 or random_devices'
	FTLAB_CAMPAIGN=1000 $(BIN)/python -m pytest -q -s tests/python/test_live_lost.py

# Boots a Debian kernel in a guest and records its schedulers; says what is missing, and then does nothing. Downloads stay
# in out/kernel-order.
kernel-order: | require-python require-cargo
	$(PYTHON) scripts/kernel_order.py

# Licences always; advisories where there is data for them, and a message where there is none.
audit: $(VENV)/.tests
	$(BIN)/python scripts/audit.py

docs: $(VENV)/.built
	$(BIN)/python -c 'import ftlab; print(ftlab.reference(), end="")' > docs/configuration.md
	$(BIN)/python scripts/readings.py --write
	FTLAB_FIELDS=write cargo test --locked --package ftlab-embed --test fields

# The rows of recorded traces need them; a figure out of its bounds is an error, on both pages.
validation: $(VENV)/.built
	FTLAB_TRACES=$(TRACES) $(BIN)/python scripts/validation.py --write docs/validation.md
	$(BIN)/python scripts/drives.py --write docs/drives.md

site: $(VENV)/.docs $(VENV)/.built
	rm -rf $(OUT)/site
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --nitpicky --quiet --fresh-env --write-all \
	  --doctree-dir $(OUT)/.doctrees docs $(OUT)/site
	@echo 'The site: $(OUT)/site/index.html'

picture: demo
	mkdir -p docs/images
	cp $(OUT)/demo.png docs/images/schedulers.png
	$(BIN)/python scripts/picture.py docs/images/stack.svg
	$(BIN)/python scripts/explained.py

workloads: $(VENV)/.built
	$(BIN)/ftlab trace fit workloads/vios/targets.toml --out workloads/vios
	$(BIN)/ftlab trace fit workloads/map-plus/targets.toml --out workloads/map-plus
	$(BIN)/ftlab trace fit workloads/msftl/targets.toml --out workloads/msftl
	@for model in messaging:nexus5-messaging-notimes.txt tieba:baidutieba-4h-notimes.txt; do \
	  trace=$(TRACES)/$${model#*:}; \
	  [ -f $$trace ] || { echo "make: no $$trace; the model stays (FTLAB_TRACES names the folder)"; continue; }; \
	  $(BIN)/ftlab trace fit $$trace --preset msftl --out workloads/msftl/$${model%%:*}.toml || exit; \
	done
	@for app in cod pubg slideshow telegram; do \
	  trace=$(TRACES)/pixel6a-$$app-exec.csv.gz; \
	  [ -f $$trace ] || { echo "make: no $$trace; the model stays (FTLAB_TRACES names the folder)"; continue; }; \
	  $(BIN)/ftlab trace fit $$trace --dedup 50ms --max-gap 60s --preset msftl \
	    --out workloads/msftl/pixel6a-$$app.toml || exit; \
	done

# `make test` checks three of those of vios, whose conflicts require a device of 128 GiB.
check-workloads: $(VENV)/.tests $(VENV)/.built
	FTLAB_WORKLOADS=all $(BIN)/python -m pytest -q tests/python/test_workloads.py

# uv resolves for every Python and system at once, with the hashes of all files that pip may choose from; as
# it is only needed here, it is not in the lock. The other files keep the versions of the first.
define locked
	{ sed '/^[^#]/,$$d' $(1); \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra $(2) --no-annotate --no-header \
	    --generate-hashes --upgrade $(3) pyproject.toml; } > $(1).new
	mv $(1).new $(1)
endef

lock: $(VENV)/.deps
	$(BIN)/pip install --quiet 'uv>=0.9'
	$(call locked,requirements.lock,build)
	$(call locked,requirements-tests.lock,dev,--constraint requirements.lock)
	$(call locked,requirements-docs.lock,docs,--constraint requirements.lock)
	$(call locked,requirements-dist.lock,dist,--constraint requirements.lock)

# Wheels are built from what the source distribution holds, so that it is known to be complete. Zig links
# against the C library of the systems that manylinux names, whatever this system has. A wheel for a processor
# needs Rust's standard library for it.
TARGETS ?= $(foreach cpu,x86_64 aarch64,$(cpu)-unknown-linux-gnu)

dist: $(VENV)/.dist $(VENV)/.built $(VEGA)
	rm -rf $(DIST) $(MAN) $(OUT)/sdist
	$(BIN)/python -m ftlab.cli.man $(MAN)/data/share/man/man1
	$(BIN)/maturin sdist --out $(DIST)
	mkdir -p $(OUT)/sdist
	tar -xzmf $(DIST)/ftlab-$(VERSION).tar.gz -C $(OUT)/sdist --strip-components 1
	@for target in $(TARGETS); do \
	  rustc --print target-libdir --target $$target | xargs test -d || rustup target add $$target || { \
	    echo "make: no wheel for $$target: its Rust standard library is not installed" >&2; continue; }; \
	  echo "==> The wheel for $$target: about three minutes of processor time"; \
	  (cd $(OUT)/sdist && PATH="$(CURDIR)/$(BIN):$$PATH" CARGO_TARGET_DIR='$(CURDIR)/target' maturin build \
	    --release --locked --zig --compatibility manylinux_2_28 --target $$target --out '$(CURDIR)/$(DIST)') || exit; \
	done
	@ls -l $(DIST)

record: | require-python
	$(if $(filter 0,$(shell id -u)),,sudo) $(PYTHON) scripts/record_trace.py --out $(TRACE)

clean:
	rm -rf $(VENV) $(OUT) $(DIST) $(MAN) target
	rm -f python/ftlab/*.so $(VEGA)
	find python tests scripts -name __pycache__ -prune -exec rm -rf {} +

# The environment: made anew whenever the versions change. Cargo is checked first, so that nobody waits for
# the packages only to find that it is missing.
$(VENV)/.deps: requirements.lock | require-python require-cargo
	@echo '==> Python packages into $(VENV)'
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
	  echo 'make: $(PYTHON) cannot make an environment; on Debian: apt install python3-venv' >&2; exit 1; }
	@$(ALIVE) 'Python packages' $(BIN)/python -m pip install --require-hashes --requirement requirements.lock
	@touch $@

# What tests, lints and types need in addition: most of all that is installed.
$(VENV)/.tests: requirements-tests.lock $(VENV)/.deps
	@echo '==> Packages of the tests into $(VENV)'
	@$(ALIVE) 'packages of the tests' $(BIN)/python -m pip install --require-hashes --requirement requirements-tests.lock
	@touch $@

# What the site needs in addition.
$(VENV)/.docs: requirements-docs.lock $(VENV)/.deps
	@echo '==> Packages of the site into $(VENV)'
	@$(ALIVE) 'packages of the site' $(BIN)/python -m pip install --require-hashes --requirement requirements-docs.lock
	@touch $@

# What links a wheel for older systems and other processors: a compiler of about 400 MB.
$(VENV)/.dist: requirements-dist.lock $(VENV)/.deps
	@echo '==> Packages of the distribution into $(VENV)'
	@$(ALIVE) 'packages of the wheels' $(BIN)/python -m pip install --require-hashes --requirement requirements-dist.lock
	@touch $@

# The Rust core, built in release mode into the environment; Python sources are used in place.
$(VENV)/.built: $(VENV)/.deps $(RUST)
	@echo '==> The Rust core into $(VENV): about three minutes of processor time at first, seconds from then on'
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(ALIVE) 'the Rust core' $(BIN)/maturin develop --release --locked
	@touch $@

# The charting library of the HTML reports, bundled once.
$(VEGA): $(VENV)/.deps | $(VENV)/.built
	@$(BIN)/python scripts/vega.py

.PHONY: require-python require-cargo
require-python:
	@command -v '$(PYTHON)' >/dev/null || { \
	  echo 'make: $(PYTHON) not found; ftlab needs Python 3.11 or later: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is $$('$(PYTHON)' -V 2>&1); ftlab needs Python 3.11 or later:" \
	    'make PYTHON=/path/to/python3.11' >&2; exit 1; }

require-cargo:
	@command -v cargo >/dev/null || { \
	  echo 'make: cargo not found; ftlab needs Rust $(RUST_VERSION) or later (https://rustup.rs)' >&2; exit 1; }
	@command -v cc >/dev/null || { \
	  echo 'make: no C linker (cc) found; on Debian: apt install gcc' >&2; exit 1; }
