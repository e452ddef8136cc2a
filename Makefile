# One verb a target. PYTHON may name another interpreter, DIR a folder of images for the benchmarks.
PYTHON ?= python
DIR ?= $(TORCHDALI_TEST_DATA)/imagenet
LIBJPEG ?= build/libjpeg

.PHONY: help install library wheel demo test test-all lint stubs types layers docs format bench derived operators golden parity memory overhead ci clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

install: ## install for development, with everything the tests need
	$(PYTHON) -m pip install -e ".[test,parity,lint]"

library: ## build the C library again, after a change in native/
	$(PYTHON) setup.py -q build_ext --inplace

wheel: $(LIBJPEG)/lib/libjpeg.a ## build a wheel for this Linux into wheelhouse/, with libjpeg-turbo linked in; needs auditwheel, patchelf
	rm -rf build/wheel
	TORCHDALI_LIBJPEG=$(LIBJPEG) TORCHDALI_NEED_EXTENSIONS=1 $(PYTHON) -m pip wheel --no-deps -w build/wheel .
	$(PYTHON) -m auditwheel repair -w wheelhouse build/wheel/*.whl

$(LIBJPEG)/lib/libjpeg.a:
	bash native/build_libjpeg.sh $(LIBJPEG)

demo: ## train a small network on generated images
	$(PYTHON) -m torchdali.cli demo

test: ## run the quick tests, without the real DALI: a few minutes
	$(PYTHON) -m pytest

test-all: ## run the slow tests and the parity tests too
	$(PYTHON) -m pytest
	$(PYTHON) -m pytest -m "slow or parity or golden"

lint: ## check style, layout and words
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m tests.docs.words

format: ## lay the code out
	$(PYTHON) -m ruff format .

stubs: ## write the type stubs of the operators, as an install does
	$(PYTHON) -m torchdali.stubs

types: stubs ## check types
	$(PYTHON) -m mypy --strict

layers: ## check who imports whom
	$(PYTHON) -m pytest -q tests/test_layers.py

docs: ## build the site into build/site, the operators' reference with it; needs the extra `docs`
	$(PYTHON) -m mkdocs build --strict

bench: ## compare with the real DALI and DataLoader on DIR
	$(PYTHON) -m benchmarks.imagenet $(DIR)

derived: stubs ## make all that is derived: stubs, reference, pictures, page on parity, table of speeds
	$(PYTHON) -m docs.reference --pictures
	$(PYTHON) -m pytest -q --write-parity=benchmarks/parity.md
	$(PYTHON) -m benchmarks.operators

operators: ## measure the operators beside the real DALI; writes benchmarks/speed.md
	$(PYTHON) -m benchmarks.operators

golden: ## store the answers of the real DALI that tests compare with
	rm -rf tests/answers
	TORCHDALI_LIVE_DALI=write $(PYTHON) -m pytest -q -p no:cacheprovider -m "golden and not parity" tests/ops tests/parity

parity: ## compare with the real DALI; writes benchmarks/parity.md
	$(PYTHON) -m pytest -q --write-parity=benchmarks/parity.md

memory: ## look for growth of memory on DIR
	$(PYTHON) -m benchmarks.memory $(DIR)

overhead: ## measure the framework's own cost
	$(PYTHON) -m benchmarks.overhead

ci: ## what continuous integration runs, from a fresh environment
	.ci/run

clean: ## remove caches and build output
	rm -rf build dist native/build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
