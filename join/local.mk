# gpubroker-runner: what is done on a rented machine (ssh) and in its cluster (kube).
pkglibexec_PROGRAMS += gpubroker-runner
gpubroker_runner_SOURCES = \
	%D%/main.c %D%/runner.h \
	%D%/ssh.c \
	%D%/ssh_args.c %D%/ssh_args.h \
	%D%/ssh_call.c %D%/ssh_call.h \
	%D%/ssh_dial.c %D%/ssh_dial.h \
	%D%/ssh_output.c %D%/ssh_output.h \
	%D%/ssh_script.c %D%/ssh_script.h \
	%D%/ssh_session.c %D%/ssh_session.h \
	$(NULL)
gpubroker_runner_LDADD = libkube.la libbase.la $(SSH2_LIBS) $(CURL_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)

# The shell that runs on machines is part of the program.
node_shell = \
	%D%/node/check.sh \
	%D%/node/common.sh \
	%D%/node/kubeconfig.sh \
	%D%/node/launch.sh \
	%D%/node/leave.sh \
	%D%/node/log.sh \
	%D%/node/preflight.sh \
	%D%/node/probe.sh \
	%D%/node/runtime.sh \
	%D%/node/standalone.sh \
	%D%/node/worker.sh \
	$(NULL)
nodist_gpubroker_runner_SOURCES = %D%/node-scripts.c
BUILT_SOURCES += %D%/node-scripts.c
CLEANFILES    += %D%/node-scripts.c
EXTRA_DIST    += $(node_shell) %D%/node/embed.awk
%D%/node-scripts.c: $(node_shell) %D%/node/embed.awk
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	  (cd $(srcdir) && LC_ALL=C $(AWK) -f %D%/node/embed.awk $(node_shell)) > $@.tmp && mv $@.tmp $@

check_PROGRAMS           += test_ssh_text.t
TESTS                    += test_ssh_text.t
test_ssh_text_t_SOURCES   = tests/unit/ssh_text.c %D%/ssh_output.c %D%/ssh_script.c
nodist_test_ssh_text_t_SOURCES = %D%/node-scripts.c
test_ssh_text_t_LDADD     = libbase.la $(JANSSON_LIBS) $(CRYPTO_LIBS)

ssh_tests = tests/system/ssh_runner.py
TESTS    += tests/system/render.py
EXTRA_DIST += tests/system/render.py
TESTS        += tests/system/kube_exec.py
SYSTEM_TESTS += tests/system/node_script.py tests/system/kube_runner.py tests/system/kube_pods.py
TESTS    += $(ssh_tests)

# Machines for tests: Debian under systemd-nspawn, and what stands in for a GPU and for k0s on them.
EXTRA_DIST += \
	tests/nodes/k0s \
	tests/nodes/node.py \
	tests/nodes/nvidia-smi \
	tests/system/runner_client.py \
	tests/system/sandbox.py \
	$(ssh_tests) tests/system/node_script.py \
	$(NULL)

# The kube role is a library of its own, so that unit tests reach its parts.
noinst_LTLIBRARIES += libkube.la
libkube_la_SOURCES  = \
	%D%/kube.c %D%/kube.h \
	%D%/kube_api.c %D%/kube_api.h \
	%D%/kube_bootstrap.c %D%/kube_bootstrap.h \
	%D%/kube_config.c %D%/kube_config.h \
	%D%/kube_exec.c %D%/kube_exec.h \
	%D%/kube_json.c \
	%D%/kube_lint.c \
	%D%/kube_manifests.c \
	%D%/kube_mint.c \
	%D%/kube_node.c %D%/kube_node.h \
	%D%/kube_pem.c \
	%D%/kube_plane.c %D%/kube_plane.h \
	%D%/kube_run.c %D%/kube_run.h \
	%D%/kube_pods.c %D%/kube_pods.h %D%/kube_pods_int.h \
	%D%/kube_pods_hear.c \
	%D%/kube_pods_make.c \
	%D%/kube_reach.c \
	%D%/kube_render.c %D%/kube_render.h \
	%D%/kube_serve.c \
	%D%/kube_text.c %D%/kube_text.h \
	%D%/kube_token.c %D%/kube_token.h \
	%D%/kube_verify.c \
	%D%/kube_yaml.c \
	$(NULL)
libkube_la_LIBADD   = $(CURL_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) $(YAML_LIBS) $(ZLIB_LIBS)

# What is applied to clusters or printed for them is part of the program, as one C string a file.
manifests = \
	%D%/dcgm-exporter.yaml.h \
	%D%/gpu-dashboard.json.h \
	%D%/gpu-operator-values.yaml.h \
	%D%/juicefs-values.yaml.h \
	%D%/k0smotron-cluster.yaml.h \
	%D%/nvidia-device-plugin.yaml.h \
	%D%/prometheus-scrape.yaml.h \
	%D%/test-gpu.sh.h \
	%D%/test-host.sh.h \
	%D%/test-pod.yaml.h \
	%D%/test-probe.sh.h \
	%D%/test-server.sh.h \
	%D%/test-storage.sh.h \
	$(NULL)
BUILT_SOURCES += $(manifests)
CLEANFILES    += $(manifests)
EXTRA_DIST    += \
	%D%/manifests/dcgm-exporter.yaml \
	%D%/manifests/gpu-dashboard.json \
	%D%/manifests/gpu-operator-values.yaml \
	%D%/manifests/juicefs-values.yaml \
	%D%/manifests/k0smotron-cluster.yaml \
	%D%/manifests/nvidia-device-plugin.yaml \
	%D%/manifests/prometheus-scrape.yaml \
	%D%/manifests/test-gpu.sh \
	%D%/manifests/test-host.sh \
	%D%/manifests/test-pod.yaml \
	%D%/manifests/test-probe.sh \
	%D%/manifests/test-server.sh \
	%D%/manifests/test-storage.sh \
	$(NULL)
$(manifests): %D%/%.h: %D%/manifests/%
	$(AM_V_GEN)$(MKDIR_P) %D% && sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@.tmp && mv $@.tmp $@

check_PROGRAMS += test_kube_text.t test_kube_token.t
TESTS          += test_kube_text.t test_kube_token.t
EXTRA_DIST     += tests/system/kube_exec.py tests/system/kube_runner.py tests/system/kube_pods.py
test_kube_text_t_SOURCES  = tests/unit/kube_text.c
test_kube_text_t_LDADD    = libkube.la libbase.la
test_kube_token_t_SOURCES = tests/unit/kube_token.c
test_kube_token_t_LDADD   = libkube.la libbase.la

# Clusters for tests: a real kube-apiserver where Go can build one, a double elsewhere, and the operator's stand-in.
EXTRA_DIST += \
	tests/kube/build.sh \
	tests/kube/certs.py \
	tests/kube/cluster.py \
	tests/kube/crds/clusters.yaml \
	tests/kube/crds/jointokenrequests.yaml \
	tests/kube/double.py \
	tests/kube/fakenode.py \
	tests/kube/fakepods.py \
	tests/kube/k0smotron.py \
	tests/kube/kubeapi.py \
	tests/kube/realserver/go.mod \
	tests/kube/realserver/go.sum \
	tests/kube/fieldcheck.py \
	tests/kube/start.py \
	$(NULL)
