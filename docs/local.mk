# docs/: man pages in POD, protocol, schemas
schemadir    = $(pkgdatadir)/schema
dist_schema_DATA = \
	%D%/schema/attempt.json %D%/schema/cluster.json %D%/schema/common.json %D%/schema/cost.json \
	%D%/schema/error.json %D%/schema/event.json %D%/schema/failure.json %D%/schema/filter.json \
	%D%/schema/lease.json %D%/schema/offer.json %D%/schema/operation.json %D%/schema/orphan.json \
	%D%/schema/progress.json %D%/schema/provider.json %D%/schema/rejection.json
exampledir        = $(docdir)/examples
dist_example_DATA = %D%/examples/alerts.yml %D%/examples/gpubroker.conf
dist_example_SCRIPTS = %D%/examples/events.py %D%/examples/rent.py

dist_doc_DATA = README.md HACKING.md SECURITY.md NEWS LICENSE %D%/operations.md %D%/what-happens.md %D%/protocol.md %D%/cluster-codes.md \
	%D%/writing-a-provider.md
EXTRA_DIST  += %D%/schema/examples %D%/children.md

TESTS       += tests/system/schema.py tests/system/hints_docs.py
EXTRA_DIST  += tests/system/hints_docs.py tests/system/schema.py tests/system/schemas.py

# Manual pages are POD, here and beside the plugins: man_MANS += NAME.7 makes one of NAME.pod.
# Without pod2man none is built or installed.
EXTRA_DIST  += %D%/gpubroker-cli.pod %D%/gpubroker.conf.pod %D%/gpubrokerd.pod
if HAVE_POD2MAN
man_MANS    += %D%/gpubroker-cli.1 %D%/gpubroker.conf.5 %D%/gpubrokerd.8
endif
CLEANFILES  += $(man_MANS)

SUFFIXES     = .pod .1 .3 .5 .7 .8
POD_TO_MAN   = $(MKDIR_P) $(@D) && $(POD2MAN) --utf8 --center=gpubroker --release='$(PACKAGE_STRING)'
.pod.1:
	$(AM_V_GEN)$(POD_TO_MAN) --section=1 $< $@
.pod.3:
	$(AM_V_GEN)$(POD_TO_MAN) --section=3 $< $@
.pod.5:
	$(AM_V_GEN)$(POD_TO_MAN) --section=5 $< $@
.pod.7:
	$(AM_V_GEN)$(POD_TO_MAN) --section=7 $< $@
.pod.8:
	$(AM_V_GEN)$(POD_TO_MAN) --section=8 $< $@
