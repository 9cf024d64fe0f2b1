# What the plugins of this tree share.
noinst_LTLIBRARIES    += libplugins.la
libplugins_la_SOURCES  = %D%/check.c %D%/refusal.c %D%/rest.c %D%/rest.h %D%/tags.c %D%/tags.h %D%/util.c %D%/util.h
libplugins_la_LIBADD   = libbase.la

include plugins/aws/local.mk
include plugins/hyperstack/local.mk
include plugins/nebius/local.mk
include plugins/shadeform/local.mk
include plugins/static/local.mk
