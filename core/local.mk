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

# Configuration, GPU names, offers and matching: pure, no sockets.
noinst_LTLIBRARIES += libmatch.la
libmatch_la_SOURCES = \
	%D%/conf.h \
	%D%/filter.h \
	%D%/gpu.h \
	%D%/match.h \
	%D%/memory.c %D%/memory.h \
	%D%/offers.h \
	$(NULL)
libmatch_la_LIBADD  = libbase.la $(LIBCONFIG_LIBS) $(JANSSON_LIBS)

sbin_PROGRAMS      += gpubrokerd
gpubrokerd_SOURCES  = %D%/main.c
gpubrokerd_LDADD    = libbase.la

# The daemon without main: loop, children, keys, store, engine.
noinst_LTLIBRARIES += libcore.la
libcore_la_SOURCES  = \
	%D%/fault.c %D%/fault.h \
	%D%/heap.c %D%/heap.h \
	%D%/loop.c %D%/loop.h \
	$(NULL)
libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBEXECDIR='"$(pkglibexecdir)"'
libcore_la_LIBADD   = libbase.la

test_loop_t_SOURCES = tests/unit/loop.c
test_loop_t_LDADD   = libcore.la
check_PROGRAMS     += test_loop.t
TESTS              += test_loop.t
