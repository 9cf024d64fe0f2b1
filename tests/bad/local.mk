# One misbehaving plugin per fault, and two that behave: good (a cloud without network) and web.
BAD_LINK = $(PROVIDER_LINK) -rpath /nowhere
check_LTLIBRARIES += good.la web.la
EXTRA_DIST += %D%/bad.h

good_la_SOURCES = %D%/good.c
good_la_LDFLAGS = $(BAD_LINK)
good_la_LIBADD  = $(JANSSON_LIBS) -lpthread
web_la_SOURCES  = %D%/web.c
web_la_LDFLAGS  = $(BAD_LINK)
