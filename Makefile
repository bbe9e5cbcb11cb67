.PHONY: install run quick test adapters adapters-small installed check soak generate format clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The tests start hundreds of Pythons: each but the first finds the modules compiled.
unexport PYTHONDONTWRITEBYTECODE

# Tests make thousands of small stores, which is quicker in memory, where there is room for them.
ROOM := $(shell [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 ] 2>/dev/null && echo TMPDIR=/dev/shm)

# uv does in seconds what takes pip a minute and a half; where it cannot be had, pip does it.
UV_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check uv 2>/dev/null \
	&& $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]' 2>/dev/null

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trivet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV); this takes about a minute, or some seconds where uv can be had."
	@$(UV_INSTALL) || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: install
	$(BIN)/trivet serve --demo

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What to run after every change: thirty seconds on two cores.
quick: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(ROOM) $(BIN)/python -m pytest -n 2 --dist worksteal -q --hypothesis-profile quick tests/unit

# The checks use one core for most of a minute; the tests begin beside them. In a clean clone nothing is compiled, and three
# processes would each compile all of it at the same time: one that only looks for the tests has done it for them. Three at a
# time on two cores: many wait for processes that they started.
test: install
	@checks=$$(mktemp); $(MAKE) --no-print-directory check > $$checks 2>&1 & checking=$$!; \
	$(BIN)/python -m pytest --collect-only -q > /dev/null; \
	$(ROOM) $(BIN)/python -m pytest -n 3 --dist worksteal -q; tested=$$?; \
	wait $$checking; checked=$$?; cat $$checks; rm -f $$checks; exit $$((tested || checked))

# The frameworks of docs/frameworks.md, each from PyPI into a venv of its own, with their tests and examples. Minutes.
adapters: install
	UV=$(BIN)/uv scripts/test_adapters.sh $(FRAMEWORKS)

# Those of the smallest, beside this environment, in the versions of constraints.txt: 11 s of processor time, which CI can spare.
# OpenAI's would take 12 more, LlamaIndex has 38 packages of its own. langsmith would load its plugin of pytest, which nobody uses.
SMALL := .adapters/small langgraph pydantic-ai-slim
adapters-small: install
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt --target $(SMALL) 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade --target $(SMALL)
	PYTHONPATH=.adapters/small $(ROOM) $(BIN)/python -m pytest -q -p no:langsmith_plugin tests/adapters

# The wheel, installed by pip, uv and pipx without the repository, and used as the README says. Minutes, from PyPI.
installed: install
	$(BIN)/python scripts/try_install.py $(INSTALLED)

# Hours: killed processes, full disks, lying endpoints and jumping clocks, mixed by a seed. SOAK='--rounds 20' is minutes.
# Then histories of laptops and a server, about an hour and a half on two cores; SYNC='--minutes 5' begins none after five.
soak: install
	$(ROOM) $(BIN)/python -m pytest -q --hypothesis-profile thorough tests/property
	$(ROOM) $(BIN)/python -m soak --output docs/results/soak.json $(SOAK)
	$(BIN)/python -m soak.syncing 10000 --long 2000 --postgres 500 --faults --out docs/results/sync.json $(SYNC)

# What derives from the contract: the stub of the methods, the command line's reference, tables in the docs.
generate: install
	$(BIN)/python scripts/generate.py

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
