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

sbin_PROGRAMS      += gpubrokerd
gpubrokerd_SOURCES  = %D%/main.c
gpubrokerd_LDADD    = libbase.la
