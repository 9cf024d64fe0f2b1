# bench/: printed by hand with `make bench`; each program prints ratios of one run.
benches         = bench-bus bench-match bench-restart
EXTRA_PROGRAMS += $(benches)
CLEANFILES     += $(benches)
bench_bus_SOURCES = %D%/bus.c
bench_bus_LDADD   = libbus.la
bench_match_SOURCES = %D%/match.c
bench_match_LDADD   = libmatch.la
bench_restart_SOURCES = %D%/restart.c
bench_restart_LDADD   = libcore.la libmatch.la libbase.la libgpubroker.la $(SQLITE_LIBS) $(CRYPTO_LIBS)

bench: $(benches)
	@for b in $(benches); do echo "$$b"; ./$$b || exit 1; done
.PHONY: bench
