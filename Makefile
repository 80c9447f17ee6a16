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

entries := $(notdir $(patsubst %/entry.conf,%,$(wildcard servers/*/entry.conf)))

.PHONY: help
help:
	@sed -n 's/^## //p' Makefile

.PHONY: servers
servers: $(addprefix entry-,$(entries))

.PHONY: entry-%
entry-%: $(BUILD)/lib/pkgconfig/llhttp.pc
	@$(MAKE) --no-print-directory -f servers/entry.mk ENTRY=$* all

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

.PHONY: clean
clean:
	rm -rf build build-*
