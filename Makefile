# SPDX-License-Identifier: Apache-2.0
# A fresh machine needs python3 (3.11 or newer, with its venv and dev packages), g++ and make. Each target installs the rest.
#
#   make demo [DATA=~/photos] [OUT=folder]    demonstration on a folder of photographs
#   make test [TESTS=tests/unit]              lint, types, layers, tests in PROCESSES processes (processors + 1)
#   make test-complete [TESTS=tests/cuda]     the tests with all cases of those of which make test runs a sample
#   make check                                lint, types, layers, generated files; no tests
#   make bench [BENCH="--quick chain"]        measure; BENCH is passed on (see BENCH=--help)
#   make fuzz [SECONDS=60] [JOBS=16]          hostile bytes into decoders and containers, hostile numbers into recipes and plans, under sanitizers
#   make test-neon [SECONDS=30]               the Arm code of all kernels on an emulated machine, if there is one
#   make test-processors                      all operators on emulated processors without AVX-512 and without AVX; minutes
#   make test-tsan [SECONDS=20]               run loop, worker pools and recipes under ThreadSanitizer; minutes
#   make stress-bindings [SECONDS=60]         threads that use pipelines, loaders and eager calls, under ThreadSanitizer; minutes
#   make test-free-threaded PYTHON=python3.14t [TESTS=...] [SECONDS=60]  threads, pipelines and torch's loader without the GIL; minutes
#   make test-xmath                            the errors of elementary functions over all floats; half an hour on one core
#   make test-asan [TESTS=tests/ops]          unit and operator tests and hostile values on an extension with sanitizers; half an hour
#   make test-gpu                             tests that need a GPU; fails on a machine without one
#   make test-gpu-sanitizer [PROCESSES=14]    all kernels under compute-sanitizer, on a GPU; minutes
#   make hostile [SECONDS=3600] [JOBS=16]     hostile values into all operators and arguments, with new values each time
#   make kills [TIMES=100]                    kill a training at random moments; no row may differ
#   make test-older, make test-newest         the take-over with a year-old torchvision, with the newest; gigabytes
#   make test-torchvision TORCHVISION_TESTS=folder [PART=0/1]  torchvision's own tests with and without the take-over; hours
#   make sweep [PART=0/1]                     uses of lazy tensors and images compared with those of plain ones; minutes
#   make recipes [RECIPES="--minutes 12"]     compare and time public scripts with and without Stoker; docs/recipes.md
#   make test-features                        speech front ends against those of transformers and torchaudio
#   make test-packages                        packages that load images, with and without the take-over: equal batches
#   make test-jax, test-tf, test-paddle, test-mxnet  the loaders of these frameworks, each in an environment of its own; gigabytes
#   make test-ray [TIMES=4]                   actors on a cluster of several nodes on this machine, nodes that fail
#   make test-triton                          exported models in a real Triton server on this machine
#   make test-servers                         the servers of the guide (FastAPI, LitServe, KServe, BentoML) on this machine
#   make test-containers                      files of the formats' own libraries; stores of objects on this machine
#   make test-dali                            rows of readers of containers against those of NVIDIA DALI, on a CPU
#   make video-zoo [ZOO="h264 ts"] [SECONDS=60]  every frame of 170 made videos with a full decode; spoilt videos
#   make trainers                             train, validate and resume in Lightning, Hugging Face, Accelerate, DDP and FSDP
#   make dry-run                              add a throw-away native operator, test it, list the touched files, remove it
#   make setup                                create .venv with the package and the test requirements
#   make generate                             write the operator index, type stubs and operator pages
#   make format                               run the formatters and the automatic fixes
#   make wheel [PYTHON=python3.12]            build a wheel in dist/, check it, run the demonstration from it; minutes
#   make docs                                 build the documentation site in build/site
#   make changelog VERSION=0.2.0              collect changes/ into CHANGELOG.md, for a release
#   make clean                                remove all environments and outputs

PYTHON ?= python3
JOBS ?= 1
VENV := .venv
PY := $(VENV)/bin/python
PIP := pip install -qq --disable-pip-version-check --no-warn-conflicts
CXX_SOURCES := '*.cpp' '*.hpp' '*.ipp' '*.cuh'
export PIP_NO_INPUT := 1
export DATA OUT

SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
           $(shell find src -type f \( -name '*.py' -o -name '*.pyi' -o -name '*.typed' -o -name '*.[chi]pp' -o -name '*.cuh' -o -name CMakeLists.txt -o -path '*/device/std/*' \))

# The C++ library is loaded first, because AddressSanitizer intercepts its exceptions. Leaks would be Python's own.
ASAN := $(CURDIR)/build/asan
ASAN_LIBRARIES = $(shell $(or $(CXX),g++) -print-file-name=libasan.so) $(shell $(or $(CXX),g++) -print-file-name=libstdc++.so)
SANITIZED = PYTHONPATH=$(ASAN)/site:$(CURDIR) LD_PRELOAD="$(ASAN_LIBRARIES)" UBSAN_OPTIONS=print_stacktrace=1 \
            ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: demo dry-run sweep test test-complete test-containers test-dali test-jax test-mxnet test-paddle test-ray test-servers test-tf test-triton test-features test-packages test-torchvision test-older test-newest recipes test-neon test-processors test-tsan test-xmath test-asan test-gpu test-gpu-sanitizer check bench fuzz setup generate format docs changelog clean kills hostile trainers wheel

demo: $(VENV)/.package
	@$(PY) -m stoker.command demo $${DATA:+--data "$$DATA"} $${OUT:+--out "$$OUT"}

# A test that runs for ten minutes hangs: its process prints all stacks and ends. The run ends with it, and with a
# process that crashes, since pytest-xdist may wait forever for the tests of a process that it has replaced.
HANGS := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true --max-worker-restart=0
# Bytecode is written, because pytest rewrites the assertions of each file without it, in each process.
test test-complete: export PYTHONDONTWRITEBYTECODE :=
# A GPU runs in seconds what its emulation takes minutes for, so nothing is left out there.
test-complete test-gpu: export STOKER_COMPLETE := 1
# One process more than processors: now and then a test waits for a process, a server or a clock.
test test-complete: check
	@$(PY) -m pytest -n $(or $(PROCESSES),$(shell expr $$(nproc) + 1)) --dist loadfile --no-loadscope-reorder $(HANGS) $(TESTS)

test-older test-newest: test-%: .venv-%/.package
	@.venv-$*/bin/python -m pytest -W ignore::DeprecationWarning tests/takeover $(TESTS)  # deprecations differ per release
	@$(if $(TORCHVISION_TESTS),$(call TORCHVISIONS_OWN,.venv-$*/bin/python))

# torchvision's own tests, which the user has fetched, with torch of .venv and torchvision's real native library.
TORCHVISIONS_OWN = PYTHONPATH=.:tests $1 -m tests.takeover.torchvision_tests $(TORCHVISION_TESTS) --part $(or $(PART),0/1)
test-torchvision: setup
	@test -n "$(TORCHVISION_TESTS)" || { echo "expected TORCHVISION_TESTS=folder, a checkout of torchvision's repository"; exit 2; }
	@$(call TORCHVISIONS_OWN,$(PY))

sweep: setup
	@PYTHONPATH=.:tests $(PY) -W ignore -m tests.takeover.sweep --part $(or $(PART),0/1)

recipes: .venv-recipes/.package
	@HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 .venv-recipes/bin/python -m tests.takeover.recipes.measure $(RECIPES)

test-gpu: setup
	@REQUIRE_GPU=1 $(PY) -m pytest tests/gpu tests/cuda tests/takeover/test_destination.py tests/takeover/test_table.py $(TESTS)

test-gpu-sanitizer: setup
	@REQUIRE_GPU=1 STOKER_SANITIZER=1 $(PY) -m pytest tests/gpu/test_sanitizer.py tests/gpu/test_gpu_jpeg.py -k sanitizer -n $(or $(PROCESSES),2) --dist worksteal $(TESTS)

# The type checker takes about as long as all other tools together, and runs beside them.
# mypy ignores a file that has a stub, unless it is named.
TYPES = $(PY) -m mypy --no-error-summary && $(PY) -m mypy --no-error-summary src/stoker/frontends/fn.py
check: setup
	@{ $(TYPES); } & types=$$!; $(MAKE) -s check-others; others=$$?; wait $$types && exit $$others

.PHONY: check-others
check-others:
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --check --quiet .
	@git ls-files -z $(CXX_SOURCES) | xargs -0 $(VENV)/bin/clang-format --dry-run -Werror
	@PYTHONPATH=src $(VENV)/bin/lint-imports --no-logo
	@$(PY) tools/budget.py --check
	@$(PY) tools/native_layers.py --check
	@$(PY) tools/language.py --check
	@for tool in index stubs kernel_stubs opdocs commands steps; do $(PY) tools/$$tool.py --check || exit 1; done

bench: setup $(VENV)/.release
	@$(PY) -m benchmarks $(BENCH)

fuzz: setup $(ASAN)/.package
	@PYTHON=$(PY) SEED=$(or $(SEED),1) JOBS=$(JOBS) fuzz/run.sh $(or $(SECONDS),60)
	@$(PY) fuzz/gpu.py $(or $(SECONDS),60) build/fuzz $(or $(SEED),1) $(JOBS)
	@$(PY) fuzz/parallel.py $(JOBS) $(or $(SEED),1) build/fuzz/found/ends \
		$(CURDIR)/$(PY) $(CURDIR)/fuzz/ends.py $(or $(SECONDS),60) {seed}
	@$(SANITIZED) $(PY) fuzz/parallel.py $(JOBS) $(or $(SEED),1) build/fuzz/found/plans \
		$(CURDIR)/$(PY) -m tests.run.plan_mutations --seconds $(or $(SECONDS),60) --seed {seed}000

test-neon: $(VENV)/.build-needs
	@PYTHON=$(PY) tests/native/neon.sh $(SECONDS)

test-processors: setup
	@for processor in max Nehalem; do PYTHONPATH=. qemu-x86_64 -cpu $$processor $(PY) -m tests.native.emulated_operators || exit 1; done

test-tsan: $(VENV)/.build-needs
	@PYTHON=$(PY) tests/native/tsan.sh $(SECONDS)

.PHONY: stress-bindings test-free-threaded
stress-bindings: .venv-tsan/.build-needs
	@PYTHON=.venv-tsan/bin/python tests/run/stress_bindings.sh $(SECONDS)

# Warnings are errors, so an import that switched the GIL on would fail.
WITHOUT_GIL := $(addprefix tests/run/test_,threads.py loader.py checkpoint.py resume.py lifecycle.py counted.py bad_samples.py \
               dali_iterators.py misuse.py reader_file.py processes.py workers.py)
test-free-threaded: .venv-free-threaded/.free-threaded-needs .venv-free-threaded/.build-needs
	@STOKER_LTO=OFF .venv-free-threaded/bin/python -m $(PIP) --no-build-isolation --no-deps --force-reinstall .
	@.venv-free-threaded/bin/python -c "import sys, stoker.torch; sys.exit(sys._is_gil_enabled())"
	@.venv-free-threaded/bin/python -m pytest $(or $(TESTS),$(WITHOUT_GIL))
	@.venv-free-threaded/bin/python -m tests.run.thread_stress --torch --seconds $(or $(SECONDS),60)

test-xmath:
	@mkdir -p build/xmath
	@$(or $(CXX),g++) -std=c++20 -O2 -ffp-contract=off -pthread -Isrc/stoker/native tests/native/xmath_range.cpp -o build/xmath/range
	@build/xmath/range 1 $(or $(PROCESSES),2)

test-asan: setup $(ASAN)/.package
	@$(SANITIZED) $(PY) -c "from stoker.native import _native; assert _native.sanitized, _native.__file__"
	@$(SANITIZED) $(PY) -m pytest -p no:cacheprovider $(or $(TESTS),tests/run/test_plan_rules.py tests/ops tests/unit)
	@$(if $(TESTS),,$(SANITIZED) $(PY) -m tests.hostile.walk --seconds $(or $(SECONDS),300) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)))

.PHONY: video-zoo
video-zoo: setup
	@PYTHONPATH=.:tests $(PY) -W ignore -m tests.video_zoo $(ZOO)
	@PYTHONPATH=.:tests $(PY) -W ignore -m tests.video_fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

dry-run: setup
	@tests/ops/new_operator/dry_run.sh

kills: setup
	@$(PY) -m tests.run.kills --times $(or $(TIMES),100) $$($(PY) -m tests.photographs build/photographs)

test-packages: .venv-packages/.package
	@.venv-packages/bin/python -m pytest -W ignore tests/takeover/packages_smoke.py $(TESTS)

test-jax test-tf test-paddle test-mxnet: test-%: .venv-%/.package
	@JAX_PLATFORMS=cpu TF_CPP_MIN_LOG_LEVEL=2 \
		.venv-$*/bin/python -m pytest -W ignore::DeprecationWarning $(wildcard tests/frameworks/$*_batches.py tests/frameworks/$*_functions.py) $(TESTS)

test-triton: .venv-triton/.package
	@.venv-triton/bin/python -m pytest -W ignore::DeprecationWarning tests/serve/triton_server.py $(TESTS)

# Ray listens on the machine's address, so the cluster has a network of its own.
test-ray: .venv-ray/.package
	@TIMES=$(or $(TIMES),4) tests/frameworks/ray_network.sh .venv-ray/bin/python -m pytest -W ignore $(subst --max-worker-restart=0,,$(HANGS)) tests/frameworks/ray_batches.py tests/frameworks/ray_serving.py $(TESTS)

test-servers: .venv-servers/.package
	@.venv-servers/bin/python -m pytest -W ignore::DeprecationWarning tests/serve/web_servers.py $(TESTS)

test-features: .venv-features/.package
	@.venv-features/bin/python -m pytest -W ignore tests/compat/test_speech_features.py tests/compat/test_audio_peers.py $(TESTS)

test-containers: .venv-containers/.package
	@.venv-containers/bin/python -m pytest -W ignore::DeprecationWarning tests/containers/real_*.py tests/containers/test_tables.py $(TESTS)

# The tests compare Stoker's rows with the record that this target compares with the rows of the real library.
test-dali: .venv-dali/.dali-needs
	@.venv-dali/bin/python -W ignore -m tests.containers.dali_values --check

trainers: .venv-trainers/.package
	@.venv-trainers/bin/python -m pytest -W ignore tests/frameworks/*_loops.py $(TESTS)

wheel: .venv-wheel/.wheel-needs
	@.venv-wheel/bin/python tools/wheel.py

hostile: setup
	@$(PY) -m tests.hostile.walk --seconds $(or $(SECONDS),3600) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

setup: $(VENV)/.test-needs $(VENV)/.package

generate: setup
	@$(PY) tools/index.py
	@$(MAKE) -s $(VENV)/.package  # the other tools see a new operator through the installed index
	@for tool in stubs kernel_stubs opdocs commands steps; do $(PY) tools/$$tool.py || exit 1; done

format: setup
	@$(PY) -m ruff check --quiet --fix . ; $(PY) -m ruff format --quiet .
	@git ls-files -z $(CXX_SOURCES) | xargs -0 $(VENV)/bin/clang-format -i

docs: generate $(VENV)/.docs-needs
	@$(PY) -m mkdocs build --quiet --strict

changelog: $(VENV)/.release-needs
	@$(PY) -m towncrier build --yes --version "$(VERSION)"

clean:
	rm -rf .venv .venv-* build dist stoker-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

# ---- environments: .venv, and .venv-NAME for the dependency group NAME of pyproject.toml ----
#
# Three rules, with one stamp per step, made when the step has succeeded:
#   ENV/.made         the environment
#   ENV/.SET-needs    the requirements of SET, and without their own requirements those of SET-no-deps
#   .venv-X/.package  the wheel of the package, in .venv-X, which has the set X

.SECONDEXPANSION:
.PRECIOUS: %/.made %-needs %/.package

%/.made:
	@tools/doctor.sh "$(PYTHON)"
	@echo "setting up $(@D)"
	@$(PYTHON) -m venv $(@D)
	@touch $@

%-needs: $$(@D)/.made pyproject.toml tools/needs.py
	@echo "installing the requirements of '$(@F:.%-needs=%)' into $(@D)"
	@for set in $(@F:.%-needs=%) $(@F:.%-needs=%-no-deps); do \
		list=$(@D)/$$set.txt; $(@D)/bin/python tools/needs.py $$set >$$list || exit 1; \
		case $$set in *-no-deps) no_deps=--no-deps;; *) no_deps=;; esac; \
		[ ! -s $$list ] || $(@D)/bin/python -m $(PIP) $$no_deps -r $$list || exit 1; done
	@touch $@

.venv-%/.package: .venv-%/.$$*-needs $(VENV)/.package
	@echo "installing stoker into $(@D)"
	@rm -rf build/wheel && STOKER_LTO=OFF $(PY) -m pip wheel -qq --no-build-isolation --no-deps -w build/wheel .
	@$(@D)/bin/python -m $(PIP) --no-deps --force-reinstall build/wheel/stoker-*.whl
	@touch $@

# The package is built without isolation, so that make compiles only changed files.
$(VENV)/.package: $(VENV)/.build-needs $(SOURCES)
	@echo "building and installing stoker"
	@STOKER_LTO=OFF $(PY) -m $(PIP) --no-build-isolation --no-deps --force-reinstall .
	@touch $@

# The package with sanitizers, in a folder of its own.
$(ASAN)/.package: $(VENV)/.build-needs $(SOURCES)
	@echo "building stoker with sanitizers"
	@rm -rf $(ASAN)/site && STOKER_LTO=OFF $(PY) -m $(PIP) --no-build-isolation --no-deps --target $(ASAN)/site \
		-C build-dir=build/asan/cmake -C cmake.define.STOKER_SANITIZE=ON .
	@touch $@

# The package as a wheel has it, with link-time optimization, from a separate build folder.
$(VENV)/.release: $(VENV)/.package
	@echo "building and installing stoker with link-time optimization"
	@$(PY) -m $(PIP) --no-build-isolation --no-deps --force-reinstall -C build-dir=build/release .
	@touch $@
