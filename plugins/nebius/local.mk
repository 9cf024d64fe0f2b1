# The provider plugin of Nebius, and what its tests need.  Built when protobuf-c is there.
if WITH_NEBIUS
noinst_LTLIBRARIES   += libnebius.la
libnebius_la_SOURCES = \
	%D%/api.c \
	%D%/auth.c \
	%D%/catalog.c \
	%D%/create.c \
	%D%/disks.c \
	%D%/grpc.c \
	%D%/grpc.h \
	%D%/image.c \
	%D%/instance.c \
	%D%/jwt.c \
	%D%/machines.c \
	%D%/nebius.h \
	%D%/offers.c \
	%D%/order.c \
	%D%/price.c \
	%D%/projects.c \
	%D%/remove.c \
	%D%/seat.c \
	%D%/status.c \
	%D%/userdata.c \
	$(NULL)
nodist_libnebius_la_SOURCES = %D%/api.pb-c.c %D%/api.pb-c.h
libnebius_la_CPPFLAGS = $(AM_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
libnebius_la_LIBADD = libplugins.la

provider_LTLIBRARIES += nebius.la
nebius_la_SOURCES  = %D%/nebius.c
nebius_la_CPPFLAGS = $(AM_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
nebius_la_LDFLAGS  = $(PROVIDER_LINK)
nebius_la_LIBADD   = libnebius.la $(JANSSON_LIBS) $(CRYPTO_LIBS) $(PROTOBUF_C_LIBS)

test_nebius_t_SOURCES  = tests/unit/nebius_parts.c
test_nebius_t_CPPFLAGS = $(AM_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
test_nebius_t_LDADD    = libnebius.la $(JANSSON_LIBS) $(CRYPTO_LIBS) $(PROTOBUF_C_LIBS)
check_PROGRAMS += test_nebius.t
TESTS          += test_nebius.t
SYSTEM_TESTS   += tests/system/nebius_plugin.py tests/system/rent_nebius.py

BUILT_SOURCES  += %D%/api.pb-c.h
CLEANFILES     += %D%/api.pb-c.h %D%/api.pb-c.c
%D%/api.pb-c.c: %D%/api.proto
	$(AM_V_GEN)$(MKDIR_P) %D% && $(PROTOC_C) --proto_path=$(top_srcdir) --c_out=$(top_builddir) $(top_srcdir)/%D%/api.proto
%D%/api.pb-c.h: %D%/api.pb-c.c
	@test -f $@ || { rm -f %D%/api.pb-c.c; $(MAKE) $(AM_MAKEFLAGS) %D%/api.pb-c.c; }
if HAVE_POD2MAN
man_MANS   += %D%/gpubroker-nebius.7
endif
endif

EXTRA_DIST += \
	%D%/api.proto \
	%D%/gpubroker-nebius.pod \
	tests/system/nebius_plugin.py tests/system/rent_nebius.py \
	tests/clouds/nebius.py tests/clouds/nebius_api.py tests/clouds/nebius_catalog.py tests/clouds/nebius_wire.py \
	$(NULL)
