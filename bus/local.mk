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
	%D%/pump.c \
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
	%D%/receive.c \
	%D%/subscribe.c \
	$(NULL)
libgpubroker_la_LIBADD  = libgpub1.la
libgpubroker_la_LDFLAGS = -version-info 0:0:0 -no-undefined -export-symbols-regex '^gpubc_'
gpubinclude_HEADERS    += %D%/gpubroker/client.h
pkgconfig_DATA         += %D%/gpubroker-client.pc

bus_tests               = \
	test_bus_proto.t \
	test_bus_requests.t \
	test_bus_sessions.t \
	test_bus_access.t \
	test_bus_events.t \
	test_bus_client.t \
	test_client_cxx.t \
	$(NULL)
check_PROGRAMS         += $(bus_tests)
TESTS                  += $(bus_tests)
EXTRA_DIST             += tests/unit/bus_fixture.h
test_bus_proto_t_SOURCES = tests/unit/bus_proto.c
test_bus_proto_t_LDADD   = libbus.la
test_bus_requests_t_SOURCES = tests/unit/bus_requests.c
test_bus_requests_t_LDADD   = libbus.la
test_bus_sessions_t_SOURCES = tests/unit/bus_sessions.c
test_bus_sessions_t_LDADD   = libbus.la
test_bus_access_t_SOURCES = tests/unit/bus_access.c
test_bus_access_t_LDADD   = libbus.la
test_bus_events_t_SOURCES = tests/unit/bus_events.c
test_bus_events_t_LDADD   = libbus.la
test_bus_client_t_SOURCES = tests/unit/bus_client.c
test_bus_client_t_LDADD   = libgpubroker.la libbus.la
test_client_cxx_t_SOURCES = tests/unit/client-cxx.cpp
test_client_cxx_t_LDADD   = libgpubroker.la

# For clients in other languages.
check_PROGRAMS         += bus-server
bus_server_SOURCES      = tests/unit/bus_server.c
bus_server_LDADD        = libbus.la
TESTS                  += tests/system/bus.py
EXTRA_DIST             += tests/system/bus.py
