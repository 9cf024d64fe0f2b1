# The systemd unit: an example always, installed as a unit where configure was told the folder.
EXTRA_DIST          += %D%/gpubrokerd.service.in
nodist_example_DATA  = %D%/gpubrokerd.service
CLEANFILES          += %D%/gpubrokerd.service
if WITH_SYSTEMD
nodist_systemdsystemunit_DATA = %D%/gpubrokerd.service
endif
%D%/gpubrokerd.service: %D%/gpubrokerd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed 's|@sbindir[@]|$(sbindir)|g' $(srcdir)/%D%/gpubrokerd.service.in >$@
