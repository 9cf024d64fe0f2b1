# The provider plugin of Hyperstack, and what its tests need.
noinst_LTLIBRARIES   += libhyperstack.la
libhyperstack_la_SOURCES = \
	%D%/api.c \
	%D%/catalog.c \
	%D%/create.c \
	%D%/flavor.c \
	%D%/hyperstack.h \
	%D%/image.c \
	%D%/machines.c \
	%D%/offers.c \
	%D%/place.c \
	%D%/remove.c \
	%D%/vm.c \
	$(NULL)
libhyperstack_la_LIBADD = libplugins.la

provider_LTLIBRARIES += hyperstack.la
hyperstack_la_SOURCES  = %D%/hyperstack.c
hyperstack_la_LDFLAGS  = $(PROVIDER_LINK)
hyperstack_la_LIBADD   = libhyperstack.la $(JANSSON_LIBS) -lm

test_hyperstack_t_SOURCES = tests/unit/hyperstack_parts.c
test_hyperstack_t_LDADD   = libhyperstack.la $(JANSSON_LIBS) -lm
check_PROGRAMS += test_hyperstack.t
TESTS          += test_hyperstack.t
SYSTEM_TESTS   += tests/system/hyperstack_plugin.py tests/system/rent_hyperstack.py

EXTRA_DIST += \
	%D%/gpubroker-hyperstack.pod \
	tests/system/hyperstack_plugin.py tests/system/rent_hyperstack.py \
	tests/clouds/hyperstack.py tests/clouds/hyperstack_catalog.py \
	$(NULL)
if HAVE_POD2MAN
man_MANS   += %D%/gpubroker-hyperstack.7
endif
