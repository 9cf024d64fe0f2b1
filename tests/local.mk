# Unit tests of the base and the header; each area lists its own in its own local.mk.
test_layout_t_SOURCES = %D%/unit/layout.c
test_cxx_t_SOURCES    = %D%/unit/header-cxx.cpp
test_base_t_SOURCES   = %D%/unit/base.c
test_base_t_LDADD     = libbase.la

check_PROGRAMS += test_layout.t test_cxx.t test_base.t
TESTS          += test_layout.t test_cxx.t test_base.t tests/system/protocol_docs.py tests/system/what_happens.py tests/system/books.py
EXTRA_DIST     += %D%/old/store-v1.sql %D%/system/books.py %D%/system/restore.py %D%/system/full_disk.py %D%/system/sweep_store.py
EXTRA_DIST     += %D%/unit/tap.h %D%/venv.py %D%/requirements.txt

# Preloaded into the daemon: writes and syncs of its books that fail.
io_fault_la_SOURCES = %D%/faults/io-fault.c
io_fault_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
io_fault_la_LIBADD  = -ldl
check_LTLIBRARIES  += io-fault.la

# The longest first: two run at a time, and one that starts last would run alone.
SYSTEM_TESTS += \
	tests/system/sweep_join.py \
	tests/system/sweep.py \
	tests/system/soak.py \
	tests/system/sweep_clouds.py \
	tests/system/rent_join.py \
	tests/system/accounts.py \
	tests/system/alarms.py \
	tests/system/bad_input.py \
	tests/system/bad_machines.py \
	tests/system/bad_plugins.py \
	tests/system/boot_log.py \
	tests/system/canary.py \
	tests/system/join_host.py \
	tests/system/children_killed.py \
	tests/system/lost_replies.py \
	tests/system/cross_cloud.py \
	tests/system/two_brokers.py \
	tests/system/load.py \
	tests/system/offline.py \
	tests/system/ttl.py \
	tests/system/standalone.py \
	tests/system/restore.py \
	tests/system/full_disk.py \
	tests/system/sweep_store.py \
	tests/system/pages.py \
	tests/system/upkeep.py \
	tests/system/watch.py \
	tests/system/readme.py \
	tests/system/rent_none.py \
	$(NULL)
EXTRA_DIST   += \
	%D%/system/accounts.py \
	%D%/system/alarms.py \
	%D%/system/broker.py \
	%D%/system/machine_hook.py \
	%D%/system/cross_cloud.py \
	%D%/system/four.py \
	%D%/system/kills.py \
	%D%/system/load.py \
	%D%/system/offline.py \
	%D%/system/ready_runner.py \
	%D%/system/soak.py \
	%D%/system/standalone.py \
	%D%/system/ttl.py \
	%D%/system/two_brokers.py \
	%D%/system/upkeep.py \
	%D%/system/watch.py \
	%D%/system/what_happens.py \
	%D%/system/pool.py \
	%D%/system/pool_hook.py \
	%D%/system/protocol_docs.py \
	%D%/system/bad_input.py \
	%D%/system/bad_machines.py \
	%D%/system/bad_plugins.py \
	%D%/system/boot_log.py \
	%D%/system/canary.py \
	%D%/system/join_host.py \
	%D%/system/children_killed.py \
	%D%/system/lost_replies.py \
	%D%/system/pages.py \
	%D%/system/readme.py \
	%D%/system/rent_none.py \
	%D%/system/rent_join.py \
	%D%/system/sweep.py \
	%D%/system/sweep_clouds.py \
	%D%/system/sweep_join.py \
	$(NULL)

# A distributed tree can show and test itself, too.
EXTRA_DIST += scripts/demo scripts/demo.py scripts/setup scripts/soak scripts/test
