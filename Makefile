# Entry points for developers and CI; works with GNU make 3.81. `make help` lists them.
# Needs nothing but Python 3.11 or newer; `make test` also needs PostgreSQL (see scripts/prerequisites.sh).

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
HOME_DIR := $(CURDIR)/.msgx
DAY   := build/day

.DEFAULT_GOAL := help
.PHONY: help setup replay demo-service test chaos bench lint clean

help:
	@echo 'make setup         install the driver and its tools into $(VENV)'
	@echo 'make replay        run a generated day of 300 flights on an embedded PostgreSQL'
	@echo 'make demo-service  a day through mailbox, driver and Kafka on this machine; DEMO="--speed 20 --keep"'
	@echo 'make test          run every test'
	@echo 'make chaos         crashes, random streams and decoder fuzz in full numbers; takes about an hour'
	@echo 'make bench         measure speed beside named references; under 20 minutes, BENCH=--quick under 2'
	@echo 'make lint          check form and types: ruff, mypy, sqlfluff'
	@echo 'make clean         remove $(VENV), caches and the embedded database of make replay'

setup: $(STAMP)

$(STAMP): pyproject.toml
	sh scripts/prerequisites.sh setup
	@echo 'Installing the driver and its tools into $(VENV); this takes about half a minute.'
	"$$(sh scripts/prerequisites.sh python)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[embedded,service,dev]'
	touch $@

replay: setup
	$(BIN)/msgx-driver generate --flights 300 --seed 20260909 --out $(DAY)
	MSGX_HOME="$(HOME_DIR)" $(BIN)/msgx-driver replay --expect $(DAY)/manifest.json $(DAY)/day.jsonl

demo-service:
	sh scripts/prerequisites.sh service
	$(MAKE) --no-print-directory setup
	$(BIN)/python scripts/demo_service.py $(DEMO)

test:
	sh scripts/prerequisites.sh test
	$(MAKE) --no-print-directory setup
	$(BIN)/pytest driver/tests

# make test runs the same tests in short form; a number given in the environment wins.
chaos:
	sh scripts/prerequisites.sh test
	$(MAKE) --no-print-directory setup
	MSGX_TEST_KILLS="$${MSGX_TEST_KILLS:-50}" MSGX_TEST_STOPS="$${MSGX_TEST_STOPS:-10}" \
	MSGX_TEST_SERVICE_KILLS="$${MSGX_TEST_SERVICE_KILLS:-300}" MSGX_TEST_SERVICE_STOPS="$${MSGX_TEST_SERVICE_STOPS:-40}" \
	MSGX_TEST_SERVICE_OUTAGES="$${MSGX_TEST_SERVICE_OUTAGES:-10}" MSGX_TEST_SERVICE_CUTS="$${MSGX_TEST_SERVICE_CUTS:-40}" \
	MSGX_TEST_SERVICE_JUMPS="$${MSGX_TEST_SERVICE_JUMPS:-40}" \
	MSGX_TEST_STREAMS="$${MSGX_TEST_STREAMS:-3000}" MSGX_TEST_FUZZ="$${MSGX_TEST_FUZZ:-200000}" \
	$(BIN)/pytest driver/tests/chaos driver/tests/property driver/tests/acceptance/test_golden.py \
	  driver/tests/integration/test_mutations.py driver/tests/unit/test_wire_decode.py driver/tests/unit/test_wire_encodings.py

bench:
	sh scripts/prerequisites.sh test
	$(MAKE) --no-print-directory setup
	$(BIN)/python -m bench $(BENCH)

lint: setup
	$(BIN)/ruff check driver scripts bench
	$(BIN)/ruff format --check driver scripts bench
	$(BIN)/mypy
	$(BIN)/sqlfluff lint --disable-progress-bar sql migrations

clean:
	if [ -x $(BIN)/msgx-driver ]; then $(BIN)/python -m msgx_driver.embedded remove "$(HOME_DIR)"; \
	elif [ -e "$(HOME_DIR)" ]; then echo 'run make setup first: it takes the driver to remove .msgx'; exit 3; fi
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf bench/out
	find driver bench -name __pycache__ -type d -prune -exec rm -rf {} +
