# The front door. `make showdown` and `make test` are all a newcomer needs; `make help` lists the rest.
# Entries are found by their folders: no file outside servers/NAME names one.

SAN ?=
comma := ,
BUILD ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

CC ?= gcc
WARN := -Wall -Wextra -Wshadow -Wconversion
OPT ?= -O2 -g
CFLAGS := -std=gnu11 -D_GNU_SOURCE $(OPT) $(WARN) -fno-omit-frame-pointer $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
CXXFLAGS := -std=gnu++17 -D_GNU_SOURCE $(OPT) -Wall -Wextra $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
LDFLAGS := $(if $(SAN),-fsanitize=$(SAN))
export CC CXX CFLAGS CXXFLAGS LDFLAGS BUILD

# A FIFO or a device under that name would never end: the harness refuses it by name.
entries := $(sort $(notdir $(patsubst %/entry.conf,%,$(shell find servers -mindepth 2 -maxdepth 2 -name entry.conf -xtype f))))

## make showdown      installs what is missing, builds, measures all entries, prints the table (about 4 min)
##                    QUICK=1: a first look in about 50 s; ENTRIES="a b": only these, all: the extra set too; WORKLOAD=name; C=connections;
##                    WORKERS=N: also rows of N workers
ENTRIES ?=
WORKLOAD ?=
C ?=
WORKERS ?=
QUICK ?=

run_arguments = $(ENTRIES) $(if $(WORKLOAD),--workload $(WORKLOAD)) $(if $(C),-c $(C)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(filter-out 0,$(QUICK)),--quick)

.PHONY: showdown
showdown:
	@scripts/setup run $(ENTRIES)
	@$(MAKE) --no-print-directory -s -j$$(nproc) build-info ENTRIES="$(or $(ENTRIES),$(default_set))"
	@$(BUILD)/showdown run $(run_arguments)

## make docker-showdown  the same in a container, with the same arguments; needs Docker or podman and
##                    nothing else (docs/DOCKER.md). CPUS=0,1: only these
.PHONY: docker-showdown
docker-showdown:
	@docker/run run $(run_arguments)

## make docker-test   builds and runs the tests in a container; TESTS="tests/e2e/x.sh": only these
.PHONY: docker-test
docker-test:
	@docker/run --test $(TESTS)

## make docker-overhead  what the container costs: boots here and in a container by turns, compared;
##                    BOOTS=12 SECONDS=15: so many, and so long each; ENTRIES
.PHONY: docker-overhead
docker-overhead:
	@$(MAKE) --no-print-directory -s -j$$(nproc) build-info
	@BUILD=$(BUILD) BOOTS=$(BOOTS) SECONDS_EACH=$(SECONDS) docker/overhead $(run_arguments)

## make docker-twice  builds the image twice, without cache, and says which files differ
.PHONY: docker-twice
docker-twice:
	@docker/twice

## make docker-clean  removes the images that were built
.PHONY: docker-clean
docker-clean:
	@docker/run --clean

## make report        the table of the last run again
.PHONY: report
report:
	@$(MAKE) --no-print-directory -s harness
	@$(BUILD)/showdown report

.DEFAULT_GOAL := help
.PHONY: help
help:
	@sed -n 's/^## //p' Makefile

# ---- the harness: one static library of all rooms, and the program

modules := jansson liburing gsl
harness_cflags = -Iharness $(shell pkg-config --cflags $(modules))
harness_libs = $(shell pkg-config --libs $(modules)) -lpthread
version := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

rooms := $(filter-out harness/cli/main.c,$(wildcard harness/*/*.c))
room_objects := $(rooms:%.c=$(BUILD)/obj/%.o)

.PHONY: harness
harness: $(BUILD)/showdown

$(BUILD)/showdown: $(BUILD)/obj/harness/cli/main.o $(BUILD)/libharness.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(harness_libs)

$(BUILD)/libharness.a: $(room_objects)
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/obj/harness/%.o: harness/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(harness_cflags) -MMD -MP -c -o $@ $<

# What records say of the build. Packages may be replaced without a build, so it is always made anew.
.PHONY: build-info
build-info: harness servers
	@scripts/build-info $(BUILD)

# The version changes with each commit: only the file that prints it is built anew.
$(BUILD)/version.h: FORCE
	@mkdir -p $(@D)
	@echo '#define SHOWDOWN_VERSION "$(version)"' | cmp -s - $@ || echo '#define SHOWDOWN_VERSION "$(version)"' > $@
FORCE:
$(BUILD)/obj/harness/cli/main.o: $(BUILD)/version.h
$(BUILD)/obj/harness/cli/main.o: harness_cflags += -I$(BUILD)

# ---- tests: every tests/unit/ROOM/NAME.c is a cmocka program, every tests/e2e/*.sh a script, and an
# entry may bring a servers/NAME/test.sh of its own; all print TAP

unit_sources := $(wildcard tests/unit/*/*.c)
unit_programs := $(unit_sources:tests/%.c=$(BUILD)/tests/%)
test_scripts := $(wildcard tests/e2e/*.sh servers/*/test.sh)
stub_programs := $(patsubst tests/stubs/%.c,$(BUILD)/stubs/%,$(wildcard tests/stubs/*.c))

$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libharness.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(harness_cflags) $(LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/libharness.a $(harness_libs) -lcmocka -lm

$(BUILD)/stubs/%: tests/stubs/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $<

.PHONY: unit
unit: $(unit_programs)
	@tests/run unit $(unit_programs)

.PHONY: e2e
e2e: harness servers $(stub_programs) $(BUILD)/fuzz/servers $(BUILD)/calibrate/resample
	@BUILD=$(BUILD) tests/run e2e $(test_scripts)

.PHONY: all-programs
all-programs: harness servers $(unit_programs) $(stub_programs) $(BUILD)/fuzz/servers $(BUILD)/calibrate/resample

$(BUILD)/bench/%: tests/bench/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(harness_cflags) $(LDFLAGS) -MMD -MP -o $@ $< $(harness_libs)

## make bench-hammer  our load generator beside wrk and h2load (ROUNDS=10 CASES="64 256 1000 p16")
.PHONY: bench-hammer
bench-hammer:
	@BUILD=$(BUILD) ROUNDS=$(ROUNDS) CASES="$(CASES)" tests/bench/hammer.sh

## make bench-compare how often compare tells a planted 3% slowdown from no change (RUNS=10: about 40 min)
RUNS ?=
.PHONY: bench-compare
bench-compare: harness
	@BUILD=$(BUILD) RUNS=$(RUNS) tests/bench/compare.sh

$(BUILD)/calibrate/%: tests/calibrate/%.c $(BUILD)/libharness.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(harness_cflags) $(LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/libharness.a $(harness_libs) -lm

## make calibrate     faults of known size are planted and must be found: six results, in about 10 min on a quiet
##                    machine (CALIBRATE_SECONDS=480; docs/METHOD.md, Calibration)
CALIBRATE_SECONDS ?=
.PHONY: calibrate
calibrate:
	@scripts/setup test
	@$(MAKE) --no-print-directory -s -j$$(nproc) harness $(stub_programs) $(BUILD)/calibrate/resample
	@BUILD=$(BUILD) CALIBRATE_SECONDS=$(CALIBRATE_SECONDS) tests/calibrate/calibrate.sh

## make cost          instructions and system calls a request, counted with valgrind, which it installs
##                    (ENTRIES="a b": only these; ARGS="--against FILE": see showdown cost --help)
ARGS ?=
.PHONY: cost
cost:
	@scripts/setup cost $(ENTRIES)
	@$(MAKE) --no-print-directory -s -j$$(nproc) harness servers
	@$(BUILD)/showdown cost $(ENTRIES) $(ARGS)

## make test          installs what is missing, builds, checks style and layers, runs every test
.PHONY: test
test:
	@scripts/setup test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all-programs
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory -s run-tests

# What is built already, and nothing else: so also where nothing may be written.
TESTS ?=
.PHONY: run-tests
run-tests:
	@BUILD=$(BUILD) tests/run all $(or $(TESTS),$(unit_programs) $(test_scripts))

## make fuzz          feeds the response scanner with made-up bytes for FUZZ_SECONDS=60 (needs clang)
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: $(BUILD)/fuzz/response
	@mkdir -p $(BUILD)/fuzz/corpus
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=40000 -timeout=10 -print_final_stats=1 -dict=tests/fuzz/http.dict \
	    -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus tests/fuzz/response

$(BUILD)/fuzz/response: tests/fuzz/response.c $(wildcard harness/http/*.[ch]) Makefile
	@command -v clang >/dev/null || { echo 'make fuzz: clang not found; apt-get install clang' >&2; exit 1; }
	@mkdir -p $(@D)
	clang -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all -Iharness -o $@ $< harness/http/answer.c harness/http/response.c

## make gate          every entry against the contract (ENTRIES="a b": only these); with SAN=address,undefined
##                    as built with sanitizers
# The address sanitizer holds back memory that was freed, which H13 would take for the server's.
.PHONY: gate
gate: harness servers
	@ASAN_OPTIONS=$${ASAN_OPTIONS:-quarantine_size_mb=1} $(BUILD)/showdown --build $(BUILD) check $(ENTRIES)

## make fuzz-servers  random bytes, mutated requests and connection faults at each entry; FUZZ_SECONDS=60 each,
##                    ENTRIES="a b": only these; SEED=N repeats
SEED ?=
.PHONY: fuzz-servers
fuzz-servers: harness servers $(BUILD)/fuzz/servers
	@$(BUILD)/fuzz/servers --root . --build $(BUILD) --seconds $(FUZZ_SECONDS) $(if $(SEED),--seed $(SEED)) $(ENTRIES)

$(BUILD)/fuzz/servers: tests/fuzz/servers.c $(BUILD)/libharness.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(harness_cflags) $(LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/libharness.a $(harness_libs) -lm

## make new           a folder for a server of your own: ENTRY=name TEMPLATE=c, lua or command (docs/ADDING.md)
TEMPLATE ?=
.PHONY: new
new:
	@scripts/new-entry "$(ENTRY)" "$(TEMPLATE)"

## make check-entry   ENTRY=name: builds it, holds it against the contract, loads it; what stands in the way of its row
.PHONY: check-entry
check-entry:
	@BUILD=$(BUILD) scripts/check-entry "$(ENTRY)"

## make check         style (clang-format) and the layers of the harness
.PHONY: check
check:
	@scripts/check-style
	@scripts/check-layers

-include $(room_objects:.o=.d) $(BUILD)/obj/harness/cli/main.d $(addsuffix .d,$(unit_programs) $(stub_programs) $(BUILD)/bench/hammer $(BUILD)/calibrate/resample)

# ---- entries

# With ENTRIES, those and the references, which every run measures; a name that is none is left for
# the program to refuse.
references := $(notdir $(patsubst %/entry.conf,%,$(shell grep -l '^status *= *reference' $(entries:%=servers/%/entry.conf))))
extra_set := $(notdir $(patsubst %/entry.conf,%,$(shell grep -l '^set *= *extra' $(entries:%=servers/%/entry.conf))))
default_set := $(filter-out $(extra_set),$(entries))
named := $(if $(filter all,$(ENTRIES)),,$(ENTRIES))
chosen := $(if $(named),$(filter $(entries),$(named) $(references)),$(entries))

.PHONY: servers
servers: $(addprefix entry-,$(chosen))

.PHONY: entry-%
entry-%: $(BUILD)/lib/pkgconfig/llhttp.pc
	@$(MAKE) --no-print-directory -f servers/entry.mk ENTRY=$* $(if $(filter entry-$*,$(MAKECMDGOALS)),ASKED=yes) all

# llhttp ships as C source in Debian's node-llhttp; entries find it as if it were a library.
llhttp_source := /usr/share/llhttp
llhttp_include := /usr/share/include/llhttp

$(BUILD)/lib/libllhttp.a: $(wildcard $(llhttp_source)/*.c) Makefile
	@mkdir -p $(@D)/llhttp
	@for f in api http llhttp; do \
	    $(CC) -std=gnu11 $(OPT) $(if $(SAN),-fsanitize=$(SAN)) -DLLHTTP_STRICT_MODE=1 -I$(llhttp_include) \
	        -c -o $(@D)/llhttp/$$f.o $(llhttp_source)/$$f.c || exit 1; done
	@$(AR) rcs $@ $(@D)/llhttp/*.o

$(BUILD)/lib/pkgconfig/llhttp.pc: $(if $(wildcard $(llhttp_source)/llhttp.c),$(BUILD)/lib/libllhttp.a)
	@mkdir -p $(@D)
	@if [ -e $(BUILD)/lib/libllhttp.a ]; then printf '%s\n' 'Name: llhttp' 'Description: HTTP parser' \
	    'Version: 8' 'Cflags: -DLLHTTP_STRICT_MODE=1 -I$(llhttp_include)' \
	    'Libs: $(abspath $(BUILD)/lib/libllhttp.a)' > $@; fi

## make contract      writes the table of docs/CONTRACT.md anew from the pages in tests/contract/
.PHONY: contract
contract: harness
	@sed -i '/^| case /,$$d' docs/CONTRACT.md
	@$(BUILD)/showdown check --list --format markdown >> docs/CONTRACT.md

## make clean         removes what was built; results/ stays
.PHONY: clean
clean:
	rm -rf build build-*
