# Builds one entry: `make -f servers/entry.mk ENTRY=name BUILD=build`. The top Makefile calls it.
# Reads the same entry.conf as the harness does. An entry whose library is missing is not built and
# says so; the harness then shows its row as skipped with what it needs.
#
# `pkgs` holds pkg-config names and, for a library without one, `-lname`.
# `headers` holds what a library of headers alone is included by.
# `needs` holds programs looked for on PATH, and files named by their whole path.
# `sources` are relative to the entry's folder; `build` is a command in their place.
# An entry of the extra set is skipped without a word, unless it was ASKED for.

include servers/$(ENTRY)/entry.conf

# Said with each call: what make exports does not reach $(shell …) before make 4.4.
pkg_config := PKG_CONFIG_PATH=$(BUILD)/lib/pkgconfig:$$PKG_CONFIG_PATH pkg-config

dir := servers/$(ENTRY)
out := $(BUILD)/servers/$(ENTRY)
modules := $(filter-out -l%,$(pkgs))
objects := $(patsubst %.cc,%.o,$(patsubst %.c,%.o,$(subst ../,up/,$(sources))))
objects := $(addprefix $(BUILD)/obj/$(ENTRY)/,$(objects))

absent_modules := $(shell for m in $(modules); do $(pkg_config) --exists $$m 2>/dev/null || echo $$m; done)
absent_needs := $(shell for n in $(needs); do case $$n in (/*) [ -e $$n ] ;; (*) command -v $$n >/dev/null ;; esac || echo $$n; done)
plusplus := $(filter %.cc,$(sources))
compiler := $(if $(plusplus),$(CXX),$(CC))
absent_compiler := $(if $(sources),$(shell command -v $(firstword $(compiler)) >/dev/null || echo $(firstword $(compiler))))
absent_headers := $(if $(absent_compiler),,$(shell for h in $(headers); do \
    printf '\043if !__has_include(<%s>)\n\043error\n\043endif\n' $$h | $(compiler) -E -x c$(if $(plusplus),++) - >/dev/null 2>&1 || echo $$h; done))
absent_builder := $(if $(strip $(build)),$(shell command -v $(firstword $(build)) >/dev/null || echo $(firstword $(build))))
absent := $(strip $(absent_modules) $(absent_headers) $(absent_needs) $(absent_compiler) $(absent_builder))

.PHONY: all
ifneq ($(absent),)
all:
	@rm -f $(out)
	@$(if $(filter extra,$(set)),$(if $(ASKED),,true ||)) echo "skipped $(ENTRY): $(absent) not found; needs: $(apt)"
else ifneq ($(strip $(build)),)
all: $(out)

$(out): $(shell find $(dir) -type f)
	@mkdir -p $(@D)
	$(subst {dir},$(dir),$(subst {bin},$(out),$(build)))
else ifeq ($(strip $(sources)),)
all: ;
else
pkg_cflags := $(if $(modules),$(shell $(pkg_config) --cflags $(modules)))
pkg_libs := $(if $(modules),$(shell $(pkg_config) --libs $(modules))) $(filter -l%,$(pkgs))

all: $(out)

$(out): $(objects)
	@mkdir -p $(@D)
	$(compiler) $(LDFLAGS) -rdynamic -o $@ $(objects) $(pkg_libs)

define compile
@mkdir -p $(@D)
$(1) $(2) -MMD -MP $(pkg_cflags) -c -o $@ $<
endef

$(BUILD)/obj/$(ENTRY)/up/%.o: servers/%.c $(dir)/entry.conf
	$(call compile,$(CC),$(CFLAGS))

$(BUILD)/obj/$(ENTRY)/%.o: $(dir)/%.c $(dir)/entry.conf
	$(call compile,$(CC),$(CFLAGS))

$(BUILD)/obj/$(ENTRY)/%.o: $(dir)/%.cc $(dir)/entry.conf
	$(call compile,$(CXX),$(CXXFLAGS))

# What a source takes in by .incbin the compiler names in no .d file.
$(objects): $(wildcard $(dir)/lib/*)

-include $(objects:.o=.d)
endif
