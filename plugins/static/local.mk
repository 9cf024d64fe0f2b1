# The provider plugin of machines one already owns.
provider_LTLIBRARIES += static.la
static_la_SOURCES = \
	%D%/calls.c \
	%D%/claims.c \
	%D%/hosts.c \
	%D%/offers.c \
	%D%/static.c %D%/static.h \
	$(NULL)
static_la_LDFLAGS = $(PROVIDER_LINK)
static_la_LIBADD  = libplugins.la $(JANSSON_LIBS) -lpthread -lm

if HAVE_POD2MAN
man_MANS   += %D%/gpubroker-static.7
endif
EXTRA_DIST += %D%/gpubroker-static.pod

TESTS      += tests/system/provider_static.py
EXTRA_DIST += tests/system/provider_static.py
SYSTEM_TESTS += tests/system/rent_static.py
EXTRA_DIST   += tests/system/rent_static.py
