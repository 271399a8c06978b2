# SPDX-License-Identifier: Apache-2.0
# A fresh machine needs python3 (3.11 or newer, with its venv and dev packages), g++ and make; all else is set up here.
#
#   make demo [DATA=~/photos] [OUT=folder]    the whole story, on a folder of photographs
#   make test [TESTS=tests/unit]              lint, types, layers, tests by PROCESSES=2
#   make check                                lint, types, layers, generated files; no tests
#   make bench [BENCH="--quick chain"]        measure; BENCH is passed on (see BENCH=--help)
#   make fuzz [SECONDS=60]                    hostile bytes into the JPEG decoder and into the GPU's, under sanitizers
#   make test-neon [SECONDS=30]               the JPEG decoder's Arm code on an emulated machine, if there is one
#   make test-gpu                             what needs a GPU; fails where there is none
#   make test-gpu-sanitizer [PROCESSES=14]    all kernels under compute-sanitizer, on a GPU; minutes
#   make kills [TIMES=100]                    kill a training at random moments; no row may differ
#   make test-older, make test-newest         the take-over beside a year-old torchvision, beside the newest; gigabytes
#   make recipes [RECIPES="--minutes 12"]     public scripts untouched and taken over: equal, how fast; docs/recipes.md
#   make lightning                            resume inside PyTorch Lightning, which only this needs
#   make setup                                the virtual environment with the package and its test needs
#   make generate                             write the operator index, type stubs and operator pages
#   make format                               format and fix what can be fixed
#   make docs                                 the documentation as a site in build/site
#   make clean                                remove all that was made here

PYTHON ?= python3
PROCESSES ?= 2
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check --no-warn-conflicts
export PIP_NO_INPUT := 1
export DATA OUT

SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
           $(shell find src -type f \( -name '*.py' -o -name '*.pyi' -o -name '*.typed' -o -name '*.[chi]pp' -o -name '*.cuh' -o -path '*/cuda/std/*' \))

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: demo test test-older test-newest recipes test-neon test-gpu test-gpu-sanitizer check bench fuzz setup generate format docs clean kills lightning

demo: $(VENV)/.photos $(VENV)/.package
	@$(PY) -m stoker.command demo $${DATA:+--data "$$DATA"} $${OUT:+--out "$$OUT"}

test: check
	@$(PY) -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder $(TESTS)

test-older test-newest: test-%: setup $(VENV)-%/.needs
	@rm -rf build/wheel && $(PY) -m pip wheel -qq --no-build-isolation --no-deps -w build/wheel .
	@$(VENV)-$*/bin/python -m pip install -qq --no-deps --force-reinstall build/wheel/stoker-*.whl
	@$(VENV)-$*/bin/python -m pytest -W ignore::DeprecationWarning tests/takeover $(TESTS)  # other releases announce other ends

recipes: setup $(VENV)-recipes/.made
	@rm -rf build/wheel && $(PY) -m pip wheel -qq --no-build-isolation --no-deps -w build/wheel .
	@$(VENV)-recipes/bin/python -m pip install -qq --no-deps --force-reinstall build/wheel/stoker-*.whl
	@HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 $(VENV)-recipes/bin/python -m tests.takeover.recipes.measure $(RECIPES)

test-gpu: setup
	@REQUIRE_GPU=1 $(PY) -m pytest tests/gpu tests/cuda tests/takeover/test_place.py tests/takeover/test_table.py $(TESTS)

test-gpu-sanitizer: setup
	@REQUIRE_GPU=1 STOKER_SANITIZER=1 $(PY) -m pytest tests/gpu/test_sanitizer.py tests/gpu/test_gpu_jpeg.py -k sanitizer -n $(PROCESSES) --dist worksteal $(TESTS)

check: setup
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy --no-error-summary
	@$(PY) -m mypy --no-error-summary src/stoker/frontends/fn.py  # beside a stub, it is not looked at otherwise
	@PYTHONPATH=src $(VENV)/bin/lint-imports --no-logo
	@$(PY) tools/budget.py --check
	@for tool in index stubs opdocs; do $(PY) tools/$$tool.py --check || exit 1; done

bench: setup
	@$(PY) -m benchmarks $(BENCH)

fuzz: $(VENV)/.build-needs
	@PYTHON=$(PY) fuzz/run.sh $(SECONDS)
	@$(PY) fuzz/gpu.py $(or $(SECONDS),60) build/fuzz

test-neon: $(VENV)/.build-needs
	@PYTHON=$(PY) tests/native/neon.sh $(SECONDS)

kills: setup
	@$(PY) -m tests.run.kills --times $(or $(TIMES),100) $$($(PY) -m tests.photographs build/photographs)

lightning: setup $(VENV)/.lightning
	@$(PY) -m pytest tests/frameworks/lightning_resume.py

setup: $(VENV)/.test-needs $(VENV)/.torchvision $(VENV)/.photos $(VENV)/.package

generate: setup
	@for tool in index stubs opdocs; do $(PY) tools/$$tool.py || exit 1; done

format: setup
	@$(PY) -m ruff check --quiet --fix . ; $(PY) -m ruff format --quiet .

docs: generate $(VENV)/.docs-needs
	@$(PY) -m mkdocs build --quiet --strict

clean:
	rm -rf $(VENV) $(VENV)-older $(VENV)-newest $(VENV)-recipes .venv-bench build dist stoker-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

# ---- set-up: one stamp per step, made when the step has succeeded ----

$(VENV)/.made:
	@tools/doctor.sh "$(PYTHON)"
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.build-needs: $(VENV)/.made pyproject.toml tools/needs.py
	@$(PY) tools/needs.py build run demo >$(VENV)/build-needs.txt
	@$(PIP) -r $(VENV)/build-needs.txt
	@touch $@

# The package is built without isolation, so that a changed file compiles again and the rest does not.
$(VENV)/.package: $(VENV)/.build-needs $(SOURCES)
	@echo "building and installing stoker"
	@$(PIP) --no-build-isolation --no-deps --force-reinstall .
	@touch $@

$(VENV)/.test-needs: $(VENV)/.build-needs
	@echo "installing what the tests need"
	@$(PY) tools/needs.py test >$(VENV)/test-needs.txt
	@$(PIP) -r $(VENV)/test-needs.txt
	@touch $@

# scikit-image ships the photographs of the demonstration; they are all that is wanted of it.
$(VENV)/.photos: $(VENV)/.made
	@$(PIP) --no-deps scikit-image
	@touch $@

# Environments of their own, with the torch that PyPI has: for CUDA, but it runs without.
.PRECIOUS: $(VENV)-%/.needs
$(VENV)-%/.needs: pyproject.toml tools/needs.py
	@$(PYTHON) -m venv $(VENV)-$*
	@$(PYTHON) tools/needs.py $* >$(VENV)-$*/needs.txt
	@$(VENV)-$*/bin/python -m pip install -qq --disable-pip-version-check -r $(VENV)-$*/needs.txt
	@$(VENV)-$*/bin/python -m pip install -qq --disable-pip-version-check --no-deps scikit-image
	@touch $@

$(VENV)-recipes/.made: pyproject.toml tools/needs.py
	@$(PYTHON) -m venv $(VENV)-recipes
	@$(PYTHON) tools/needs.py recipes >$(VENV)-recipes/needs.txt
	@$(VENV)-recipes/bin/python -m pip install -qq --disable-pip-version-check -r $(VENV)-recipes/needs.txt
	@$(PYTHON) tools/needs.py torchvision recipes-beside >$(VENV)-recipes/beside.txt
	@$(VENV)-recipes/bin/python -m pip install -qq --disable-pip-version-check --no-deps scikit-image -r $(VENV)-recipes/beside.txt
	@touch $@

# The wheel asks for the torch that it was built beside, with CUDA; the tests run its Python side beside any torch.
$(VENV)/.torchvision: $(VENV)/.test-needs
	@$(PY) tools/needs.py torchvision >$(VENV)/torchvision-needs.txt
	@$(PIP) --no-deps -r $(VENV)/torchvision-needs.txt
	@touch $@

# Without what they ask for beside it: the tests' torch is there already.
$(VENV)/.lightning: $(VENV)/.test-needs
	@$(PY) tools/needs.py lightning >$(VENV)/lightning-needs.txt
	@$(PIP) --no-deps -r $(VENV)/lightning-needs.txt
	@touch $@

$(VENV)/.docs-needs: $(VENV)/.made pyproject.toml
	@$(PY) tools/needs.py docs >$(VENV)/docs-needs.txt
	@$(PIP) -r $(VENV)/docs-needs.txt
	@touch $@
