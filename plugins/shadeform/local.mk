# The provider plugin of Shadeform, and what its tests need.
noinst_LTLIBRARIES   += libshadeform.la
libshadeform_la_SOURCES = \
	%D%/api.c \
	%D%/create.c \
	%D%/instance.c \
	%D%/keys.c \
	%D%/machines.c \
	%D%/offers.c \
	%D%/seat.c \
	%D%/shadeform.h \
	$(NULL)
libshadeform_la_LIBADD = libplugins.la

provider_LTLIBRARIES += shadeform.la
shadeform_la_SOURCES  = %D%/shadeform.c
shadeform_la_LDFLAGS  = $(PROVIDER_LINK)
shadeform_la_LIBADD   = libshadeform.la $(JANSSON_LIBS)

test_plugins_t_SOURCES   = tests/unit/plugins_util.c
test_plugins_t_LDADD     = libplugins.la
test_shadeform_t_SOURCES = tests/unit/shadeform_parts.c
test_shadeform_t_LDADD   = libshadeform.la $(JANSSON_LIBS)
check_PROGRAMS += test_plugins.t test_shadeform.t
TESTS          += test_plugins.t test_shadeform.t tests/system/shadeform_plugin.py tests/system/fake_clouds.py

EXTRA_DIST += \
	%D%/gpubroker-shadeform.pod \
	tests/system/plugin_cloud.py tests/system/shadeform_plugin.py tests/system/fake_clouds.py \
	tests/clouds/shadeform.py tests/clouds/shadeform_catalog.py \
	$(NULL)
if HAVE_POD2MAN
man_MANS   += %D%/gpubroker-shadeform.7
endif
