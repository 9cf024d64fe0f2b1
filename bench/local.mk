# bench/: printed by hand with `make bench`; each program prints ratios of one run.
benches         = bench-bus
EXTRA_PROGRAMS += $(benches)
CLEANFILES     += $(benches)
bench_bus_SOURCES = %D%/bus.c
bench_bus_LDADD   = libbus.la

bench: $(benches)
	@for b in $(benches); do echo "$$b"; ./$$b || exit 1; done
.PHONY: bench
