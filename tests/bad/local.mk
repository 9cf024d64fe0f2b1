# One misbehaving plugin per fault, and two that behave: good (a cloud without network) and web.
BAD_LINK = $(PROVIDER_LINK) -rpath /nowhere
EXTRA_DIST += %D%/bad.h

good_la_SOURCES = %D%/good.c
good_la_LDFLAGS = $(BAD_LINK)
good_la_LIBADD  = $(JANSSON_LIBS) -lpthread
web_la_SOURCES  = %D%/web.c
web_la_LDFLAGS  = $(BAD_LINK)

crashes_in_list_la_SOURCES = %D%/crashes-in-list.c
crashes_in_list_la_LDFLAGS = $(BAD_LINK)
emits_forever_la_SOURCES   = %D%/emits-forever.c
emits_forever_la_LDFLAGS   = $(BAD_LINK)
garbage_la_SOURCES         = %D%/garbage.c
garbage_la_LDFLAGS         = $(BAD_LINK)
hangs_in_create_la_SOURCES = %D%/hangs-in-create.c
hangs_in_create_la_LDFLAGS = $(BAD_LINK)
lacks_remove_la_SOURCES    = %D%/lacks-remove.c
lacks_remove_la_LDFLAGS    = $(BAD_LINK)
leaks_files_la_SOURCES     = %D%/leaks-files.c
leaks_files_la_LDFLAGS     = $(BAD_LINK)
no_entry_la_SOURCES        = %D%/no-entry.c
no_entry_la_LDFLAGS        = $(BAD_LINK)
old_abi_la_SOURCES         = %D%/old-abi.c
old_abi_la_LDFLAGS         = $(BAD_LINK)
prints_la_SOURCES          = %D%/prints.c
prints_la_LDFLAGS          = $(BAD_LINK)
slow_la_SOURCES            = %D%/slow.c
slow_la_LDFLAGS            = $(BAD_LINK)
too_small_la_SOURCES       = %D%/too-small.c
too_small_la_LDFLAGS       = $(BAD_LINK)
writes_la_SOURCES          = %D%/writes.c
writes_la_LDFLAGS          = $(BAD_LINK)

check_LTLIBRARIES += good.la web.la crashes-in-list.la emits-forever.la garbage.la hangs-in-create.la \
	lacks-remove.la leaks-files.la no-entry.la old-abi.la prints.la slow.la too-small.la writes.la
