# What every program here shares: errors, logs, clocks, JSON, frames.
noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES  = \
	%D%/child.c %D%/child.h \
	%D%/cleanup.h \
	%D%/clock.c %D%/clock.h \
	%D%/err.c %D%/err.h \
	%D%/json.c %D%/json.h \
	%D%/log.c %D%/log.h \
	%D%/vec.h \
	%D%/wire.c %D%/wire.h \
	$(NULL)
libbase_la_LIBADD   = $(JANSSON_LIBS)

check_PROGRAMS += test_clock.t
TESTS          += test_clock.t
test_clock_t_SOURCES = tests/unit/clock.c
test_clock_t_LDADD   = libbase.la
SYSTEM_TESTS   += tests/system/attack.py
EXTRA_DIST     += tests/system/attack.py
SYSTEM_TESTS   += tests/system/hostile.py
EXTRA_DIST     += tests/system/hostile.py

# Configuration, GPU names, offers and matching: pure, no sockets.
noinst_LTLIBRARIES += libmatch.la
libmatch_la_SOURCES = \
	%D%/conf.c %D%/conf.h \
	%D%/conf_bus.c \
	%D%/conf_cluster.c \
	%D%/conf_parts.c \
	%D%/conf_provider.c \
	%D%/conf_read.c %D%/conf_read.h \
	%D%/conf_secret.c \
	%D%/filter.c %D%/filter.h \
	%D%/gpu.c %D%/gpu.h \
	%D%/gpu_table.c %D%/gpu_table.h \
	%D%/match.c %D%/match.h %D%/match_int.h \
	%D%/match_check.c \
	%D%/match_query.c \
	%D%/match_text.c \
	%D%/memory.c %D%/memory.h %D%/memory_account.c %D%/memory_int.h \
	%D%/offers.c %D%/offers.h %D%/offers_int.h \
	%D%/offers_atoms.c \
	%D%/offers_find.c \
	%D%/offers_list.c \
	%D%/offers_print.c \
	$(NULL)
nodist_libmatch_la_SOURCES = %D%/gpus.c
libmatch_la_LIBADD  = libbase.la $(LIBCONFIG_LIBS) $(JANSSON_LIBS) -lm

%D%/gpus.c: %D%/gpus.conf
	$(AM_V_GEN)mkdir -p %D% && { echo '#include "core/gpu_table.h"'; echo 'const char gpus_conf[] ='; \
	  sed -e 's/^ *#.*//' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $(srcdir)/%D%/gpus.conf; echo ';'; } > $@.tmp && mv $@.tmp $@
BUILT_SOURCES += %D%/gpus.c
CLEANFILES    += %D%/gpus.c
EXTRA_DIST    += %D%/gpus.conf

match_tests     = test_conf.t test_filter.t test_gpu.t test_match.t test_memory.t test_offers.t
check_PROGRAMS += $(match_tests)
TESTS          += $(match_tests) tests/system/conf_docs.py
SYSTEM_TESTS   += tests/system/offers.py
EXTRA_DIST     += tests/system/conf_docs.py tests/system/offers.py
test_conf_t_SOURCES   = tests/unit/conf.c
test_conf_t_LDADD     = libmatch.la
test_filter_t_SOURCES = tests/unit/filter.c
test_filter_t_LDADD   = libmatch.la
test_gpu_t_SOURCES    = tests/unit/gpu.c
test_gpu_t_LDADD      = libmatch.la
test_match_t_SOURCES  = tests/unit/match.c
test_match_t_LDADD    = libmatch.la
test_memory_t_SOURCES = tests/unit/memory.c
test_memory_t_LDADD   = libmatch.la
test_offers_t_SOURCES = tests/unit/offers.c
test_offers_t_LDADD   = libmatch.la

sbin_PROGRAMS      += gpubrokerd
gpubrokerd_SOURCES  = %D%/main.c
gpubrokerd_LDADD    = libcore.la libmatch.la libbus.la libbase.la $(SQLITE_LIBS) $(CRYPTO_LIBS)

# The daemon without main: loop, children, keys, store, engine.
noinst_LTLIBRARIES += libcore.la
libcore_la_SOURCES  = \
	%D%/broker.h %D%/store_sql.h \
	%D%/api.c %D%/api.h \
	%D%/api_admin.c \
	%D%/api_boot.c \
	%D%/api_cost.c \
	%D%/api_host.c \
	%D%/api_kubeconfig.c \
	%D%/api_lease.c \
	%D%/api_offers.c \
	%D%/api_orphans.c \
	%D%/api_read.c \
	%D%/api_rent.c %D%/api_words.c \
	%D%/attempts.c \
	%D%/attempt_check.c \
	%D%/attempt_work.c \
	%D%/balance.c \
	%D%/ballast.c %D%/ballast.h \
	%D%/budget.c \
	%D%/calls.c \
	%D%/clusters.c \
	%D%/engine.c \
	%D%/feed.c \
	%D%/freeze.c %D%/freeze.h \
	%D%/hints.c \
	%D%/identity.c %D%/identity.h \
	%D%/lease.c %D%/lease.h \
	%D%/mark.c \
	%D%/metrics.c %D%/metrics.h %D%/metrics_int.h \
	%D%/metrics_books.c \
	%D%/metrics_providers.c \
	%D%/metrics_file.c \
	%D%/model.c %D%/model.h \
	%D%/model_json.c \
	%D%/ops.c \
	%D%/orphans.c %D%/orphans.h \
	%D%/orphan_lease.c \
	%D%/own.c \
	%D%/pipeline.c \
	%D%/pipeline_args.c %D%/pipeline_args.h \
	%D%/pipeline_int.h \
	%D%/pipeline_judge.c \
	%D%/pipeline_kube.c \
	%D%/providers.c \
	%D%/rebuild.c \
	%D%/recon.c \
	%D%/rent.c \
	%D%/rent_boot.c \
	%D%/rent_quote.c \
	%D%/start.c %D%/start.h \
	%D%/start_books.c \
	%D%/start_check.c \
	%D%/start_conf.c \
	%D%/store.c %D%/store.h \
	%D%/store_get.c \
	%D%/store_open.c \
	%D%/store_put.c \
	%D%/undo.c \
	%D%/truth.c %D%/truth.h \
	%D%/turn.c \
	%D%/watch.c \
	%D%/fault.c %D%/fault.h \
	%D%/heap.c %D%/heap.h \
	%D%/loop.c %D%/loop.h \
	%D%/spent.c \
	%D%/sshkey.c %D%/sshkey.h \
	%D%/strike.c %D%/strike.h \
	%D%/supervise.c %D%/supervise.h %D%/supervise_int.h \
	%D%/supervise_blame.c \
	%D%/supervise_call.c \
	%D%/supervise_child.c \
	%D%/supervise_describe.c \
	%D%/supervise_frame.c \
	%D%/supervise_io.c \
	%D%/supervise_proc.c \
	%D%/supervise_pulse.c \
	%D%/supervise_send.c \
	$(NULL)
libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBEXECDIR='"$(pkglibexecdir)"'
libcore_la_LIBADD   = libbase.la $(CRYPTO_LIBS)

test_loop_t_SOURCES = tests/unit/loop.c
test_loop_t_LDADD   = libcore.la
check_PROGRAMS     += test_loop.t
TESTS              += test_loop.t

# A child that misbehaves as it is told, and the test that tells it.
bad_child_SOURCES        = tests/unit/bad-child.c
bad_child_LDADD          = libbase.la
test_supervise_t_SOURCES = tests/unit/supervise.c
test_supervise_t_LDADD   = libcore.la
check_PROGRAMS          += bad-child test_supervise.t
TESTS                   += test_supervise.t

test_sshkey_t_SOURCES = tests/unit/sshkey.c
test_sshkey_t_LDADD   = libcore.la
check_PROGRAMS       += test_sshkey.t
TESTS                += test_sshkey.t

test_fault_t_SOURCES    = tests/unit/fault.c
test_fault_t_LDADD      = libcore.la
test_children_t_SOURCES = tests/unit/children.c
test_children_t_LDADD   = libcore.la
check_PROGRAMS         += test_fault.t test_children.t
TESTS                  += test_fault.t test_children.t
test_lease_t_SOURCES = tests/unit/lease.c
test_lease_t_LDADD   = libcore.la
test_store_t_SOURCES = tests/unit/store.c
test_store_t_LDADD   = libcore.la $(SQLITE_LIBS)
test_mark_t_SOURCES  = tests/unit/mark.c
test_mark_t_LDADD    = libcore.la
test_budget_t_SOURCES = tests/unit/budget.c
test_budget_t_LDADD  = libcore.la libmatch.la
check_PROGRAMS      += test_budget.t test_lease.t test_mark.t test_store.t
TESTS               += test_budget.t test_lease.t test_mark.t test_store.t

SYSTEM_TESTS        += tests/system/metrics.py tests/system/orphans.py tests/system/rebuild.py \
	tests/system/spending.py
EXTRA_DIST          += tests/system/metrics.py tests/system/orphans.py tests/system/rebuild.py \
	tests/system/spending.py
