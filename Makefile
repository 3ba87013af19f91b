# Commands of a checkout; `make` lists them. They work in .venv, which they make and keep up to date.
PYTHON ?= python3
BIN := .venv/bin
# More processes than cores: many tests wait, for a slot to come due or a limit to be reached.
PROCESSES ?= $(shell echo $$(($$(nproc) + 3)))
ARGS ?=
# Without compiled modules every process compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test quick lint format docs package release client screenshots clean

help:
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/' | expand -t 20

.venv/lodger-installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; \
	then $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && $(BIN)/python -m pip install --quiet -e . --group dev; \
	else uv pip install --quiet --python $(BIN)/python -e . --group dev; fi
	@cp pyproject.toml $@

demo: .venv/lodger-installed ## a demonstration on embedded SQLite; Ctrl-C stops it (ARGS="--for 30s" ends by itself)
	$(BIN)/lodger demo $(ARGS)

# Beside the linters, which leave a core idle, the tests' modules are compiled once: each process of the suite would compile them all.
test: .venv/lodger-installed ## lint, and the whole suite
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 & $(MAKE) --no-print-directory lint; linted=$$?; wait; exit $$linted
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --reruns 1 --rerun-except 'from pytest-timeout' $(ARGS)

quick: .venv/lodger-installed ## unit tests: less than a minute
	LODGER_FUZZ=brief $(BIN)/python -m pytest -n auto --dist loadfile -q -m "not slow" -k "not postgresql" tests/unit $(ARGS)

lint: .venv/lodger-installed ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	@find engine sandbox stdlib -name '*.py' -exec wc -l {} + | awk '$$1 > 600 && $$2 != "total" {print "long, for your consideration: " $$2 " has " $$1 " lines"}'
	@find engine sandbox stdlib -name '*.py' -printf '%h\n' | sort | uniq -c | awk '$$1 > 20 {print "large, for your consideration: " $$2 " has " $$1 " modules"}'

format: .venv/lodger-installed ## format, and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/lodger-installed ## write the generated pages of docs/, and build the site into build/site
	$(BIN)/python -m tests.reference_pages
	@$(BIN)/mkdocs --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --group docs || uv pip install --quiet --python $(BIN)/python --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --clean
	@echo "Open it with: $(BIN)/python -m http.server --directory build/site"

package: .venv/lodger-installed ## build sdist and wheel into dist/, and try the wheel in a clean environment
	$(BIN)/python deploy/release.py package

release: .venv/lodger-installed ## package on each supported Python that is here, with SBOM and digests
	$(BIN)/python deploy/release.py release

client: .venv/lodger-installed ## the client in TypeScript as a package of npm, with types made from the OpenAPI document (needs npm)
	$(BIN)/python clients/typescript/openapi.py
	cd clients/typescript && npm ci --ignore-scripts --no-fund && npm pack

screenshots: .venv/lodger-installed ## pictures of each page of the dashboard, and those of docs/images (ARGS="FOLDER TIME")
	$(BIN)/python -m tests.web.screenshots $(ARGS)

clean: ## remove .venv, dist/ and build/
	rm -rf .venv dist build
