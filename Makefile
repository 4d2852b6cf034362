PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES := $(shell nproc)
# One more than cores: tests wait, for other programs, disks and kernels that others compile.
WORKERS := $(shell expr $(CORES) + 1)

.PHONY: demo docs test test-integrations test-plain test-quick slow-tests packages lint bench accuracy mutants memory-limit resume-rounds sql-million crash-rounds serve-rounds serve-fuzz serve-idle deploy-check index-stress attack-rounds bounds property-rounds spark-rounds compat clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/developed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[all,dev]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/neardup demo --output demo-output

# The site, in build/site: open build/site/index.html.
docs: $(VENV)/developed
	$(BIN)/python -m sphinx -q -W --keep-going --jobs auto -c docs -d build/doctrees . build/site

test: $(VENV)/developed
	$(MAKE) --jobs 2 --output-sync=target $(VENV)/compiled lint
	$(BIN)/python -m pytest -m 'not integration' --numprocesses $(WORKERS) --dist worksteal

# What needs servers and other programs, and all that need not, as plain Python.
test-integrations: $(VENV)/compiled test-plain
	$(BIN)/python -m pytest -m integration --numprocesses $(WORKERS) --dist worksteal

test-plain: $(VENV)/developed
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses $(CORES) --dist worksteal

# A third of the tests, in a minute.
test-quick: $(VENV)/compiled
	$(BIN)/python -m pytest --quick --numprocesses $(CORES) --dist worksteal

slow-tests: $(VENV)/compiled
	$(BIN)/python -m pytest --write-slow

# Wheel and sdist in dist/, installed with each extra alone.
packages: $(VENV)/developed
	rm -rf dist
	$(BIN)/python tools/try_packages.py

$(VENV)/compiled: $(VENV)/developed $(shell find src/neardup/kernels -name '*.py')
	$(BIN)/neardup compile
	touch $@

lint: $(VENV)/developed
	nice $(BIN)/ruff check .
	nice $(BIN)/ruff format --check .
	nice $(BIN)/mypy

bench: $(VENV)/developed
	$(BIN)/python bench/run.py
	$(BIN)/python tools/benchmark_tables.py

accuracy: $(VENV)/developed
	$(BIN)/python bench/experiments/accuracy.py
	$(BIN)/python tools/benchmark_tables.py

# Small changes of the source, each of which a test should notice; MUTANTS in each room.
MUTANTS ?= 300
mutants: $(VENV)/compiled
	$(BIN)/python -m pip install --quiet 'cosmic-ray>=8.4' 'coverage>=7.6'
	$(BIN)/python tools/mutants.py --count $(MUTANTS) kernels hamming similarity
	$(BIN)/python tools/mutants.py --count $(MUTANTS) index pipeline service

memory-limit: $(VENV)/developed
	NEARDUP_MEMORY_SCALE=8 $(BIN)/python -m pytest tests/pipeline/test_memory_limit.py -k 'limit or ten_times'

resume-rounds: $(VENV)/developed
	NEARDUP_RESUME_ROUNDS=50 $(BIN)/python -m pytest -s --timeout 3600 tests/pipeline/test_resume.py -k killed_at_random

compat: $(VENV)/developed
	$(BIN)/python tests/compat/compare_with_package.py

sql-million: $(VENV)/developed
	NEARDUP_SQL_ROWS=1000000 $(BIN)/python -m pytest -s tests/integrations/test_databases.py

crash-rounds: $(VENV)/developed
	$(BIN)/python tests/index/crash_rounds.py --rounds 150
	$(BIN)/python tests/index/crash_rounds.py --rounds 100 --kind similarity
	NEARDUP_CRASH_MOMENTS=2000 $(BIN)/python -m pytest tests/index/test_durable_crash.py

serve-rounds: $(VENV)/developed
	PYTHONPATH=tests/service $(BIN)/python tests/service/test_service_endures.py 50

serve-fuzz: $(VENV)/developed
	PYTHONPATH=tests/service:tests $(BIN)/python tests/service/requests_damaged.py 600

# As many idle connections as a process may open.
serve-idle: $(VENV)/developed
	NEARDUP_IDLE_CONNECTIONS=10000 $(BIN)/python -m pytest tests/service/test_service_endures.py -k idle

deploy-check: $(VENV)/developed
	env -u NUMBA_CACHE_DIR NEARDUP_CLEAN_INSTALL=1 $(BIN)/python -m pytest --timeout 1800 tests/service/test_deploy.py

index-stress: $(VENV)/developed
	NEARDUP_STRESS_SECONDS=120 $(BIN)/python -m pytest tests/index/test_torn_reads.py

attack-rounds: $(VENV)/developed
	NEARDUP_ATTACK_ROUNDS=2000 NEARDUP_RESUME_ROUNDS=300 $(BIN)/python -m pytest -s --timeout 14400 tests/attack \
		tests/pipeline/test_resume.py -k 'attack or killed_at_random'
	$(MAKE) bounds

# Every kernel with each index checked: what would read elsewhere is an IndexError.
bounds: $(VENV)/developed
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest --timeout 3600 tests/kernels tests/index \
		tests/hamming tests/similarity tests/features tests/fingerprinting tests/attack/test_damage.py

property-rounds: $(VENV)/developed
	NEARDUP_EXAMPLES=2000 $(BIN)/python -m pytest --timeout 3600

spark-rounds: $(VENV)/developed
	$(BIN)/python tests/spark/rounds.py --engines 'sail,local[2],cluster'
	NEARDUP_SPARK_SKEW=1000000 $(BIN)/python -m pytest --timeout 7200 tests/spark/test_spark.py -k skew

clean:
	rm -rf $(VENV) demo-output build dist
