# Two commands for a fresh clone: `make demo` and `make test`. Both make their own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
FAMILIES := $(VENV)-families
# Extras that are installed first. CI names those of the site and the wheel too: one install in place of three.
EXTRAS ?= all,dev

.PHONY: demo test test-again test-families lint docs clean

demo: $(VENV)/core-installed
	$(BIN)/hardlook demo --out demo

# Three processes for two cores, as tests wait for browsers, servers and killed runs. Files in our own order (tests/conftest.py):
# the long ones, which have few tests, would else be left for the end, when one process idles. Compiled files are kept, whatever
# the environment says: to compile all tests again takes a quarter minute.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/everything-installed $(FAMILIES)/installed
	$(BIN)/python -m pytest --numprocesses 3 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder; tests=$$?; \
	echo $$tests > $(VENV)/tests-status; $(MAKE) --no-print-directory test-families && exit $$tests

# What failed in `make test`, alone on the machine: tests of kills, servers and browsers may fail because of what runs beside them.
# Only after tests that failed (status 1), not after an error of pytest itself.
test-again: export PYTHONDONTWRITEBYTECODE =
test-again:
	case $$(cat $(VENV)/tests-status) in \
		0) ;; \
		1) $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -m "not families" ;; \
		*) exit 1 ;; \
	esac && $(MAKE) --no-print-directory test-families

# Models of timm, torchvision and segmentation-models-pytorch.
test-families: export PYTHONDONTWRITEBYTECODE =
test-families: $(FAMILIES)/installed
	$(FAMILIES)/bin/python -m pytest --numprocesses 2 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder tests/docs/test_families_pages.py \
		tests/data/stored_files/test_torchvision_datasets.py \
		$(addprefix tests/models/families/test_,timm_encoders.py torchvision_models.py smp_segmenters.py)

lint: $(VENV)/everything-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site is built strictly: a broken link, a name that is gone or a cell that raises ends it.
docs: $(VENV)/docs-installed $(FAMILIES)/installed
	NO_MKDOCS_2_WARNING=1 HARDLOOK_FAMILIES_PYTHON=$(FAMILIES)/bin/python $(BIN)/mkdocs build --strict --quiet
	@echo "the site is in site/index.html"

# The wheel as a user meets it: built, installed with the newest and the lowest versions, run.
release: $(VENV)/release-installed
	$(BIN)/python tools/check_release.py $(CHECK)

clean:
	rm -rf $(VENV) $(FAMILIES) demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps make the second call work offline: nothing is installed again until these files change.
$(VENV)/core-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

# lvis is the judge of LVIS scores in tests. It is installed without its dependencies, because only its plots need them, and
# opencv-python would overwrite the files of opencv-python-headless. easyfsl is the judge of few-shot learners; they need torch
# alone.
$(VENV)/everything-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps lvis easyfsl
	$(BIN)/hardlook weights install --small
	touch $@
	touch $(VENV)/core-installed $(foreach one,docs release,$(if $(findstring $(one),$(EXTRAS)),$(VENV)/$(one)-installed))

# An environment on top of the other one, for libraries that stand on torchvision: in the same one it would break parts of
# transformers where its build does not fit that of torch. Nothing is installed twice.
$(FAMILIES)/installed: $(VENV)/everything-installed
	$(BIN)/python -m venv --clear --without-pip $(FAMILIES)
	$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
		> $$($(FAMILIES)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/everything.pth
	$(BIN)/python -m pip --python $(FAMILIES)/bin/python install --quiet --constraint constraints.txt --no-deps \
		torchvision timm segmentation-models-pytorch
	touch $@

$(VENV)/docs-installed: $(VENV)/everything-installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

$(VENV)/release-installed: $(VENV)/everything-installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[release]"
	touch $@
