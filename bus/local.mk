# The bus: what both ends share, the daemon's end, the C client.
noinst_LTLIBRARIES     += libgpub1.la libbus.la
libgpub1_la_SOURCES     = \
	%D%/frame.c %D%/frame.h \
	%D%/monitor.c %D%/monitor.h \
	%D%/proto.c %D%/proto.h \
	%D%/sock.c %D%/sock.h \
	$(NULL)
libgpub1_la_LIBADD      = libbase.la $(ZMQ_LIBS)

libbus_la_SOURCES       = \
	%D%/bus.c %D%/bus.h %D%/internal.h \
	%D%/events.c \
	%D%/ipc.c %D%/ipc.h \
	%D%/principal.c %D%/principal.h \
	%D%/reply.c \
	%D%/router.c \
	%D%/selftest.c \
	%D%/session.c %D%/session.h \
	%D%/zap.c %D%/zap.h \
	$(NULL)
libbus_la_LIBADD        = libgpub1.la

lib_LTLIBRARIES        += libgpubroker.la
libgpubroker_la_SOURCES = \
	%D%/call.c \
	%D%/client.c %D%/client.h \
	%D%/link.c %D%/link.h \
	%D%/subscribe.c \
	$(NULL)
libgpubroker_la_LIBADD  = libgpub1.la
libgpubroker_la_LDFLAGS = -version-info 0:0:0 -no-undefined -export-symbols-regex '^gpubc_'
gpubinclude_HEADERS    += %D%/gpubroker/client.h
pkgconfig_DATA         += %D%/gpubroker-client.pc
