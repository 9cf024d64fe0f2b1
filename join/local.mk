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

# Clusters for tests: a real kube-apiserver where Go can build one, a double elsewhere, and the operator's stand-in.
EXTRA_DIST += \
	tests/kube/build.sh \
	tests/kube/certs.py \
	tests/kube/cluster.py \
	tests/kube/crds/clusters.yaml \
	tests/kube/crds/jointokenrequests.yaml \
	tests/kube/double.py \
	tests/kube/k0smotron.py \
	tests/kube/kubeapi.py \
	tests/kube/realserver/go.mod \
	tests/kube/realserver/go.sum \
	tests/kube/schema.py \
	tests/kube/start.py \
	$(NULL)
