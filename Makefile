# Everything happens in .venv, which the first command creates; running a command twice is safe.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all lock lint docs pictures bench bench-utility audit exact self-test faults fuzz release clean
.DEFAULT_GOAL := test

$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# What the demo needs is little, and the first thing that somebody tries: it has an install of its own.
$(VENV)/.demo: pyproject.toml
	@echo "Installing what the demo needs into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --editable '.[demo]'
	@touch $@

demo: $(VENV)/.demo
	@$(BIN)/consenso demo

# What a change must pass, and everything, before a release and each night: docs/adr/0021. Three workers for two cores, since some tests wait for
# processes; each more imports and collects everything once more. One thread per worker: they share the cores already. A worker that has nothing left to do takes over tests of another.
test test-all: export OPENBLAS_NUM_THREADS = 1
test test-all: export OMP_NUM_THREADS = 1
test test-all: export NUMBA_NUM_THREADS = 1
# Workers share what one of them has compiled, also where bytecode is not written otherwise.
test test-all: export PYTHONDONTWRITEBYTECODE =
WORKERS := --numprocesses 3 --dist worksteal
test: $(INSTALLED)
	$(BIN)/python -m pytest $(WORKERS) -m "not slow" $(PYTEST_ARGS)

test-all: export HYPOTHESIS_PROFILE = many
test-all: $(INSTALLED)
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

# The versions of everything that is installed for development, as they passed the tests.
lock: $(INSTALLED)
	$(BIN)/python -m pip freeze --exclude-editable > requirements-dev.lock

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/consenso lint src/consenso

docs: $(INSTALLED)
	$(BIN)/python docs/algorithm_pages.py
	$(BIN)/python docs/gallery_pages.py
	$(BIN)/mkdocs build --strict --quiet --site-dir site

# Screenshots of every page at two widths, in light and dark; needs Debian's chromium.
pictures: $(INSTALLED)
	$(BIN)/python docs/pictures/take.py

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

# Attack every algorithm and observer, and write the tables of docs/attacks.md; most of the time goes into exact values, several
# minutes an algorithm. It fails if a claim is refuted, or is not reached and nothing says why. More trials prove more of what is claimed; SLOW_TRIALS are
# those of algorithms whose trials cannot be taken together.
TRIALS ?= 2000
SLOW_TRIALS ?= 400
audit: $(INSTALLED)
	$(BIN)/consenso audit --all --workers 2 --trials $(TRIALS) --slow-trials $(SLOW_TRIALS) --page docs/attacks.md --out audit
	$(BIN)/consenso audit --canaries 2000 --page docs/attacks.md

# Compare every guarantee with the exact value for linear losses, and write the table of docs/privacy.md.
exact: $(INSTALLED)
	$(BIN)/python -m consenso.testing.exact_values --page docs/privacy.md

# KILLS random kills -9 over all engines with a table in docs/attacks.md; an hour or two.
KILLS ?= 1000
faults: $(INSTALLED)
	$(BIN)/python -m tests.deployment.kills --kills $(KILLS) --page docs/attacks.md

# Plant every fault, see that it is caught, and list in docs/attacks.md by what; a minute or two.
self-test: $(INSTALLED)
	$(BIN)/consenso audit --self-test --page docs/attacks.md

# Change everything that is read from others for SECONDS; what brings out anything but an error of the library is kept
# in tests/corpus, where every run of the suite reads it again.
SECONDS ?= 120
fuzz: $(INSTALLED)
	$(BIN)/python -W error -m tests.fuzz --seconds $(SECONDS) --page docs/attacks.md

# Rivals need what the package does not: Opacus beside it, diffprivlib with the scikit-learn that it can import. A rival
# that cannot be installed is left out, and the table says so by not naming it.
RIVALS := .venv-rivals
OLD := .venv-diffprivlib

$(RIVALS)/.installed: pyproject.toml
	test -x $(RIVALS)/bin/python || $(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet --editable '.[safe,data,plots]'
	$(RIVALS)/bin/python -m pip install --quiet torch==2.13.0 && $(RIVALS)/bin/python -m pip install --quiet opacus || true
	touch $@

$(OLD)/.installed:
	test -x $(OLD)/bin/python || $(PYTHON) -m venv $(OLD)
	$(OLD)/bin/python -m pip install --quiet diffprivlib 'scikit-learn<1.6' || rm -f $(OLD)/bin/python
	touch $@

bench-utility: export CONSENSO_DIFFPRIVLIB = $(CURDIR)/$(OLD)/bin/python
bench-utility: $(RIVALS)/.installed $(OLD)/.installed
	$(RIVALS)/bin/python -m benchmarks.utility $(UTILITY_ARGS)
	$(RIVALS)/bin/python -m benchmarks.utility.graphs

# A source archive and a wheel in dist/, for the version in pyproject.toml, which the change log must have.
release: $(INSTALLED) lint test-all docs
	$(BIN)/python -c "import tomllib, pathlib, sys; v = tomllib.loads(pathlib.Path('pyproject.toml').read_text())['project']['version']; \
	sys.exit(0 if f'## {v}' in pathlib.Path('CHANGELOG.md').read_text() else f'CHANGELOG.md has no section for {v}')"
	$(BIN)/python -m pip install --quiet build
	rm -rf dist && $(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) $(RIVALS) $(OLD) site dist .mypy_cache .ruff_cache .import_linter_cache
