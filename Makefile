# The two commands are `make run` and `make test`; the rest are parts of them.
# Meson does the building: see meson.build.
BUILD     := build
SANITIZED := build-asan
FUZZ      := build-fuzz
FUZZ_SECONDS ?= 60

.PHONY: help run test build sanitized probes fuzz format install clean setup

help:
	@echo 'make run       install what is missing, build, run a first cell in a fresh sandbox'
	@echo 'make test      install what is missing, build, run every test'
	@echo 'make build     leave the programs in $(BUILD)/'
	@echo 'make probes    try to get out of a sandbox, one line per attempt'
	@echo 'make fuzz      search with each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make format    lay out the C lines that differ from HEAD'
	@echo 'make install   DESTDIR= is honoured'
	@echo 'make clean     remove what was built; templates stay in $${CUVETTE_DATA:-/var/lib/cuvette}'

run: build
	@tools/ensure-template $(BUILD)
	@tools/first-cell $(BUILD)

test: build
	@tools/setup test
	@$(MAKE) --no-print-directory sanitized
	@tools/ensure-template $(BUILD)
	@tools/run-tests $(BUILD) $(SANITIZED)

build: setup
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD)
	@ninja -C $(BUILD)

sanitized: setup
	@test -f $(SANITIZED)/build.ninja || meson setup $(SANITIZED) -Db_sanitize=address,undefined
	@ninja -C $(SANITIZED)

setup:
	@tools/setup build

probes: build
	@tools/ensure-template $(BUILD)
	@tools/run-tests --only probes $(BUILD)

fuzz: setup
	@tools/setup bench
	@tools/fuzz $(FUZZ) $(FUZZ_SECONDS)

format:
	@tools/setup bench
	@git clang-format-14 --binary clang-format-14 --extensions c,h HEAD

install: build
	@meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) $(SANITIZED) $(FUZZ)
