.PHONY: help install run quick test check check-imports adapters adapters-small installed soak generate format clean
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of Python processes; all but the first use the compiled modules.
unexport PYTHONDONTWRITEBYTECODE

# Tests create thousands of small stores, which is faster in memory if there is room.
ROOM := $(shell [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 ] 2>/dev/null && echo TMPDIR=/dev/shm)

# uv installs in seconds what takes pip a minute and a half. If uv cannot be installed, pip installs everything.
UV_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check uv 2>/dev/null \
	&& $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]' 2>/dev/null

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

install: $(VENV)/installed  ## Install everything into .venv

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trivet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV): some seconds with uv, or a minute and a half with pip if uv cannot be installed."
	@$(UV_INSTALL) || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: install  ## Serve the demo's memories with the page
	$(BIN)/trivet serve --demo

check: install  ## Check format, lint, spelling, prose width, types, imports and commit titles
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/python scripts/check_prose_width.py
	$(BIN)/python scripts/check_commit_titles.py
	$(BIN)/mypy
	$(MAKE) --no-print-directory check-imports

check-imports: install
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_imports.py

quick: install  ## After every change: format, lint and the unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(ROOM) $(BIN)/python -m pytest -n 2 --dist worksteal -q --hypothesis-profile quick tests/unit

# The checks use one core for most of a minute; the tests start alongside. In a clean clone, collecting once compiles
# the modules, which three workers would otherwise do three times. Three workers on two cores: many tests wait for
# processes they started.
test: install  ## Before you send a change: every check and every test
	@checks=$$(mktemp); $(MAKE) --no-print-directory check > $$checks 2>&1 & checking=$$!; \
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -q > /dev/null; \
	$(ROOM) $(BIN)/python -m pytest -n 3 --dist worksteal -q; tested=$$?; \
	wait $$checking; checked=$$?; cat $$checks; rm -f $$checks; exit $$((tested || checked))

# Takes minutes: installs each framework from PyPI into its own venv.
adapters: install  ## Test the adapters of docs/frameworks.md and their examples
	UV=$(BIN)/uv scripts/test_adapters.sh $(FRAMEWORKS)

# The two smallest frameworks, in the versions of constraints.txt: 11 s of processor time, which CI can spare. OpenAI's
# would take 12 s more, and LlamaIndex brings 38 packages. The langsmith plugin for pytest is not used.
SMALL := .adapters/small langgraph pydantic-ai-slim
adapters-small: install  ## Test the adapters of the two smallest frameworks
	@$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt --target $(SMALL) 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade --target $(SMALL)
	PYTHONPATH=.adapters/small $(ROOM) $(BIN)/python -m pytest -q -p no:langsmith_plugin tests/adapters

# Takes minutes: needs PyPI.
installed: install  ## Install the wheel with pip, uv and pipx, and use it as the README says
	$(BIN)/python scripts/try_install.py $(INSTALLED)

# Takes hours: killed processes, full disks, lying endpoints and jumping clocks, mixed by a seed; then histories of
# laptops and a server. SOAK='--rounds 20' SYNC='--minutes 5' takes minutes.
soak: install  ## Run fault tests by the thousand
	$(ROOM) $(BIN)/python -m pytest -q --hypothesis-profile thorough tests/property
	$(ROOM) $(BIN)/python -m soak --output docs/results/soak.json $(SOAK)
	$(BIN)/python -m soak.syncing 10000 --long 2000 --postgres 500 --faults --out docs/results/sync.json $(SYNC)

generate: install  ## Rewrite what is derived from the code: methods.pyi, docs/cli.md, tables and pictures in docs
	$(BIN)/python scripts/generate.py

format: install  ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the environment, caches and builds
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .adapters dist build
