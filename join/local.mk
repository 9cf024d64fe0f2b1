# gpubroker-runner: what is done on a rented machine (ssh) and in its cluster (kube).
pkglibexec_PROGRAMS += gpubroker-runner
gpubroker_runner_SOURCES = \
	%D%/main.c %D%/runner.h \
	%D%/kube.c \
	%D%/ssh.c \
	$(NULL)
gpubroker_runner_LDADD = libbase.la $(SSH2_LIBS) $(CURL_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)

# Machines for tests: Debian under systemd-nspawn, and what stands in for a GPU and for k0s on them.
EXTRA_DIST += \
	tests/nodes/node.py \
	tests/nodes/nvidia-smi \
	$(NULL)
