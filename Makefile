# Two commands for a fresh clone: `make demo` and `make test`. Both make their own environment in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean

demo: $(VENV)/core-installed
	$(BIN)/hardlook demo --out demo

# Files in our own order (tests/conftest.py): the long ones, which have few tests, would else be left for the end, when one
# process idles. Compiled files are kept, whatever the environment says: to compile all tests again takes a quarter minute.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/everything-installed
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/everything-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps make the second call work offline: nothing is installed again until these files change.
$(VENV)/core-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

# lvis is the judge of LVIS scores in tests. It is installed without its dependencies, because only its plots need them, and
# opencv-python would overwrite the files of opencv-python-headless.
$(VENV)/everything-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,dev]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps lvis
	$(BIN)/hardlook weights install --small
	touch $@
	touch $(VENV)/core-installed
