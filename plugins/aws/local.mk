# The provider plugin of AWS, and what its tests need.  The one user of libxml2.
if WITH_AWS
noinst_LTLIBRARIES  += libaws.la
libaws_la_SOURCES = \
	%D%/account.c \
	%D%/api.c \
	%D%/aws.h \
	%D%/cache.c \
	%D%/create.c \
	%D%/image.c \
	%D%/ini.c \
	%D%/instance.c \
	%D%/keys.c \
	%D%/keys_http.c \
	%D%/keys_process.c \
	%D%/machines.c \
	%D%/network.c \
	%D%/offers.c \
	%D%/order.c \
	%D%/prices.c \
	%D%/prices_parse.c \
	%D%/query.c \
	%D%/refuse.c \
	%D%/regions.c \
	%D%/remove.c \
	%D%/sign.c \
	%D%/sign.h \
	%D%/strays.c \
	%D%/types.c \
	%D%/userdata.c \
	%D%/xml.c \
	$(NULL)
libaws_la_CPPFLAGS = $(AM_CPPFLAGS) $(XML_CFLAGS)
libaws_la_LIBADD   = libplugins.la

provider_LTLIBRARIES += aws.la
aws_la_SOURCES  = %D%/aws.c
aws_la_LDFLAGS  = $(PROVIDER_LINK)
aws_la_LIBADD   = libaws.la $(JANSSON_LIBS) $(CRYPTO_LIBS) $(XML_LIBS) -lm

test_aws_t_SOURCES = tests/unit/aws_parts.c
test_aws_t_LDADD   = libaws.la $(JANSSON_LIBS) $(CRYPTO_LIBS) $(XML_LIBS) -lm
check_PROGRAMS += test_aws.t
TESTS          += test_aws.t
SYSTEM_TESTS   += tests/system/aws_plugin.py tests/system/aws_moto.py tests/system/rent_aws.py
if HAVE_POD2MAN
man_MANS   += %D%/gpubroker-aws.7
endif
endif
EXTRA_DIST += \
	%D%/gpubroker-aws.pod \
	tests/system/aws_plugin.py tests/system/aws_moto.py tests/system/rent_aws.py \
	tests/clouds/aws.py tests/clouds/aws_catalog.py \
	$(NULL)
