# demo    TPC-H through Forebay and through the alternatives, one table at the end
# test    all tests, with whatever they need
# test-universe  200 worlds of 60 simulated seconds, a quarter of them with all that there is; part of test
# test-sql  random SQL against DuckDB, SQL_QUERIES from the seed SQL_SEED on in each of SQL_MODES
# test-api  /api/v1 held against its own description by schemathesis and by a client that is generated from it, of a cluster of the binary (API_ARGS: those of `st run`)
# test-tpcds  TPC-DS on a cluster of processes, against DuckDB's answers
# storm   processes of the binary, a load, a fault or two at a time, and what clients were told (STORM_ARGS: --seed, --only, --missing, --seconds, --write)
# soak    hours of one cluster of the binary, a fault a minute, a limit on memory, and whether anything grows (SOAK_ARGS: --minutes, --seed, --memory, --write)
# universe  coordinator, workers and clients in simulated time: UNIVERSE_SEEDS worlds from UNIVERSE_SEED on (UNIVERSE_ARGS: --seconds, --ops, --standby, --shards, --queries, --trace, --write; UNIVERSE_PROFILE=worlds compiles for longer what runs for hours)
# verify  what must hold before a change goes in; changes no file of the checkout
# tidy    the rules of the checkout that the compiler does not know, by `cargo xtask tidy`; part of lint
# loom    the models of what threads share, in every order that they can run in
# asan    tests of what has unsafe code under the address sanitizer, with a nightly compiler
# tsan    tests of what threads share without a lock under the thread sanitizer, with a nightly compiler
# miri    tests of decisions and formats in the interpreter, with a nightly compiler that has it; not tried yet
# fix     what a machine can put right
# fuzz    requests, messages, frames and files that mean harm, FUZZ_SECS seconds a kind; FUZZ names one kind, or several
# bench   the benchmarks, one JSON line a figure
# figures what pages say of speed and size: rounds of all benches, bench/figures.json, and the pages from it (FIGURES_ARGS: --light, --only ..)
# dist    what people install: packages, image, chart, wheel, in target/packages (DIST_PROFILE=fast to compile less)
# book    the pages of docs/ as a site, in target/book; says how to get mdbook where it is not there
# test-console  every page of the console in Chromium, which it wants installed, with a cluster of the binary, which has the pages in it (CONSOLE_ARGS: --shots, --update)
# test-dist  installs and starts all of it, made of DIST_BINARY
# figures-pages  only the pages, from the JSON that is there

CARGO ?= cargo
# Things that tests need and that are not part of the checkout.
FOREBAY_CACHE ?= $(HOME)/.cache/forebay
FAST = --locked --profile fast
# The engine is compiled once and in one profile only.
ENGINE = -p forebay-sql -p forebay-distributed -p forebay-flight -p forebay

# The second S3 server: one that is there already, or the one that test-deps builds.
VERSITYGW := $(or $(FOREBAY_VERSITYGW),$(shell command -v versitygw),$(wildcard $(HOME)/go/bin/versitygw),$(FOREBAY_CACHE)/bin/versitygw)

.PHONY: demo test test-deps test-light test-engine test-python test-universe test-sql test-api test-tpcds storm soak universe test-planted verify format deny tidy lint lint-engine loom asan tsan miri fix fuzz golden bench peers figures figures-pages book dist test-dist test-console

# Says what it compiles: the first time that takes longer than the demo.
demo:
	@echo "building Forebay and its query engine (10 to 30 minutes the first time), then the demo"
	$(CARGO) run $(FAST) -p forebay --no-default-features -- demo $(DEMO_ARGS)

test: test-deps test-light test-engine test-python test-universe

test-light:
	FOREBAY_VERSITYGW="$(VERSITYGW)" $(CARGO) test --locked

test-engine:
	$(CARGO) test $(FAST) $(ENGINE) -p forebay-tpch

# After the engine's tests, which build the binary that the Flight SQL tests start.
test-python: test-engine
	FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/test-python

# In a command of its own: what it stands on is compiled with a feature (tokio's `test-util`) that the engine does without, and the engine would
# be compiled once more with it. The other tests of worlds are of test-light.
test-universe:
	$(CARGO) test $(FAST) -p forebay-universe --test suite two_hundred_worlds

SQL_QUERIES ?= 5000
SQL_SEED ?= 1
SQL_MODES ?= plain hot cluster killed

test-sql:
	$(CARGO) build $(FAST) $(ENGINE)
	FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/test-sql --seed $(SQL_SEED) --queries $(SQL_QUERIES) $(SQL_MODES:%=--mode %)

test-api:
	$(CARGO) build $(FAST) $(ENGINE)
	FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/test-api $(API_ARGS)

TPCDS_ARGS ?= check

test-tpcds:
	$(CARGO) build $(FAST) $(ENGINE)
	FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/test-tpcds $(TPCDS_ARGS)

# The engine and the storm in one command each, so that neither changes the features of the other.
RUN_STORM = FOREBAY_TEST_BINARY="$${FOREBAY_TEST_BINARY:-$${CARGO_TARGET_DIR:-$(CURDIR)/target}/fast/forebay}" $(CARGO) run $(FAST) -p forebay-storm --
storm: test-deps
	$(CARGO) build $(FAST) $(ENGINE)
	$(RUN_STORM) $(STORM_ARGS)

soak:
	$(CARGO) build $(FAST) $(ENGINE)
	$(RUN_STORM) --soak $(SOAK_ARGS)

UNIVERSE_SEEDS ?= 200
UNIVERSE_SEED ?= 1
UNIVERSE_PROFILE ?= fast

universe:
	$(CARGO) run --locked --profile $(UNIVERSE_PROFILE) -p forebay-universe -- --seeds $(UNIVERSE_SEEDS) --seed $(UNIVERSE_SEED) --jobs $$(nproc) $(UNIVERSE_ARGS)

# A build of its own: nothing else has defects to be put back.
test-planted:
	$(CARGO) test $(FAST) -p forebay-universe --features planted --test planted

test-deps:
	@FOREBAY_VERSITYGW="$(VERSITYGW)" FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/test-deps

verify: test-deps format deny lint lint-engine loom test

format:
	$(CARGO) fmt --all --check

deny:
	@FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/deny

tidy:
	$(CARGO) xtask tidy

# Of all but the engine's crates, which take as long again.
lint: tidy
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

lint-engine:
	$(CARGO) clippy $(FAST) $(ENGINE) -p forebay-python -p forebay-bench -p forebay-bench-table -p forebay-tpch --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(FAST) $(ENGINE) --no-deps

# In a folder of its own, since all that it builds is built otherwise. The transport's dependencies can't be: it has a feature.
loom:
	RUSTFLAGS="--cfg loom" $(CARGO) test --locked --target-dir "$${CARGO_TARGET_DIR:-target}/loom" -p forebay-shard --lib models
	$(CARGO) test --locked -p forebay-transport --features models --lib models

# With a nightly compiler (`rustup toolchain install nightly`). Calls by the ring are given up where a process is as slow as here.
ASAN = RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 rustup run nightly cargo test --locked \
	--target-dir "$${CARGO_TARGET_DIR:-target}/asan" --target $(shell rustc -vV | sed -n 's/^host: //p')
asan:
	$(ASAN) -p forebay-block-store -p forebay-table
	$(ASAN) -p forebay-transport -- --skip ring::

# Without building the standard library for it, which rustc wants to be told is meant: what the library does within, and fences, the
# sanitizer does not see.
TSAN = RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" TSAN_OPTIONS="suppressions=$(CURDIR)/.config/tsan.supp" \
	PROPTEST_CASES=4 rustup run nightly cargo test --locked \
	--target-dir "$${CARGO_TARGET_DIR:-target}/tsan" --target $(shell rustc -vV | sed -n 's/^host: //p')
tsan:
	$(TSAN) -p forebay-shard --lib

# Not tried: it wants the component `miri` (`rustup component add --toolchain nightly miri rust-src`), which the project has had
# nowhere yet. Of core/, what calls no C: forebay-shard sorts suffixes by libsais. A few cases of each property, since it is slow.
MIRI = -p forebay-types -p forebay-placement -p forebay-navigation -p forebay-scheduling -p forebay-eviction -p forebay-nodes -p forebay-protocol \
	-p forebay-rights -p forebay-table
miri:
	@rustup run nightly cargo miri --version >/dev/null 2>&1 || { echo "make miri wants the interpreter: rustup component add --toolchain nightly miri rust-src" >&2; exit 1; }
	MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 rustup run nightly cargo miri test --locked \
		--target-dir "$${CARGO_TARGET_DIR:-target}/miri" $(MIRI)

fix:
	$(CARGO) clippy --fix --allow-dirty --allow-staged --all-targets
	$(CARGO) fmt --all

# The bytes of all messages of this version of the protocol, before the next one begins: docs/specs/protocol.md.
golden:
	$(CARGO) test --locked -p forebay-protocol --test suite the_file_of_this_version_is_written -- --ignored

FUZZ_SECS ?= 600
# The kinds, each with its test, those that compile the engine at the end.
FUZZ_messages = --locked -p forebay-worker --test suite fuzz::a_worker_takes_any_message
FUZZ_frames = --locked -p forebay-worker --test suite fuzz::a_worker_takes_any_frames
FUZZ_answers = --locked -p forebay-worker --test suite fuzz::answers::
FUZZ_control = --locked -p forebay-worker --test suite fuzz::a_coordinator_takes_any_message
FUZZ_s3 = --locked -p forebay-s3 --test suite fuzz::
FUZZ_tables = --locked -p forebay-table --test suite fuzz::
FUZZ_shard-bases = --locked -p forebay-shard --test suite fuzz::fuzz_a_shard_s_base
FUZZ_shard-layers = --locked -p forebay-shard --test suite fuzz::fuzz_a_shard_s_layers
FUZZ_manifests = --locked -p forebay-shard-store --test suite fuzz::
FUZZ_metadata = --locked -p forebay-metadata --test suite fuzz::
FUZZ_files = $(FAST) $(ENGINE) --test suite formats::fuzz::fuzz_files_of_all_formats
FUZZ_BY_CARGO = messages frames answers control s3 tables shard-bases shard-layers manifests metadata files
FUZZ ?= $(FUZZ_BY_CARGO) flight

fuzz: $(FUZZ:%=fuzz-%)

# Where nothing is printed but a signal, as of a stack that ran over, FOREBAY_TEST_FUZZ_SEED (printed first) has the run again.
$(FUZZ_BY_CARGO:%=fuzz-%): fuzz-%:
	FOREBAY_TEST_FUZZ_SECS=$(FUZZ_SECS) $(CARGO) test $(FUZZ_$*) -- --nocapture --test-threads 1

fuzz-flight:
	FOREBAY_CACHE="$(FOREBAY_CACHE)" FOREBAY_TEST_FUZZ_SECS=$(FUZZ_SECS) .ci/test-python -s tests/test_flight_fuzz.py

# Whatever else is asked for.
fuzz-%:
	@echo "there is no $* to fuzz: FUZZ is of $(FUZZ_BY_CARGO) flight" >&2; exit 2

bench:
	$(CARGO) run $(FAST) -p forebay-bench -- all --json

# Programs that benches measure beside, each a workspace of its own with versions of its own: LiquidCache for `forebay-bench hot-liquid-cache`, Tantivy
# for `forebay-bench-shard tantivy`.
peers:
	$(CARGO) build --release --locked --manifest-path bench/peers/liquid-cache/Cargo.toml --target-dir "$(FOREBAY_CACHE)/liquid-cache"
	$(CARGO) build --release --locked --manifest-path bench/peers/tantivy/Cargo.toml --target-dir "$(FOREBAY_CACHE)/tantivy"
	[ -x "$(FOREBAY_CACHE)/duckdb/bin/python" ] || python3 -m venv "$(FOREBAY_CACHE)/duckdb"
	"$(FOREBAY_CACHE)/duckdb/bin/python" -m pip install --quiet duckdb==1.5.5

# Compiles the query engine for the benches that need it, unless FIGURES_ARGS has --light.
figures:
	$(CARGO) run $(FAST) -p forebay-bench-figures -- $(FIGURES_ARGS)

figures-pages:
	$(CARGO) run --locked -p forebay-bench-figures -- --readme

book:
	@FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/book "$${CARGO_TARGET_DIR:-target}/book"

test-console:
	$(CARGO) test $(FAST) -p forebay-coordinator --lib a_million_segments -- --ignored --nocapture
	$(CARGO) build $(FAST) $(ENGINE)
	FOREBAY_CACHE="$(FOREBAY_CACHE)" .ci/test-console $(CONSOLE_ARGS)

DIST_PROFILE ?= dist
DIST_OUT ?= $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/packages

dist:
	CARGO="$(CARGO)" FOREBAY_CACHE="$(FOREBAY_CACHE)" DIST_PROFILE="$(DIST_PROFILE)" DIST_OUT="$(DIST_OUT)" DIST_BINARY="$(DIST_BINARY)" DIST_WHEEL="$(DIST_WHEEL)" dist/build

# Compiles nothing: packages of the binary and the wheel that the engine's and Python's tests have built.
test-dist: DIST_BINARY ?= $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/fast/forebay
test-dist: DIST_WHEEL ?= $(lastword $(wildcard $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/wheels/forebay-*.whl))
test-dist:
	FOREBAY_CACHE="$(FOREBAY_CACHE)" DIST_BINARY="$(DIST_BINARY)" DIST_WHEEL="$(DIST_WHEEL)" dist/test/run
