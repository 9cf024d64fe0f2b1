# gpubroker-cli, on libgpubroker only.
noinst_LTLIBRARIES     += libcliargs.la
libcliargs_la_SOURCES   = \
	%D%/args.c %D%/args.h \
	%D%/format.c %D%/format.h \
	%D%/keys.h \
	%D%/set.c %D%/set.h \
	%D%/set-file.c \
	%D%/table.c %D%/table.h \
	%D%/values.c %D%/values.h \
	%D%/values-json.c \
	$(NULL)
libcliargs_la_LIBADD    = libbase.la

bin_PROGRAMS           += gpubroker-cli
gpubroker_cli_SOURCES   = \
	%D%/admin.c \
	%D%/ask.c \
	%D%/change.c \
	%D%/cli.h \
	%D%/clusters.c \
	%D%/commands.h \
	%D%/completion.c \
	%D%/help.c %D%/help.h \
	%D%/job.c %D%/job.h \
	%D%/job-reply.c \
	%D%/job-report.c \
	%D%/kubeconfig.c \
	%D%/leases.c \
	%D%/main.c \
	%D%/offers.c %D%/offers.h \
	%D%/options.c \
	%D%/orphans.c \
	%D%/output.c \
	%D%/progress.c %D%/progress.h \
	%D%/rent.c \
	%D%/report.c \
	%D%/run.h \
	%D%/ssh.c \
	%D%/story.c %D%/story.h \
	%D%/watch.c \
	$(NULL)
gpubroker_cli_LDADD     = libcliargs.la libgpubroker.la libbase.la

test_cli_t_SOURCES      = tests/unit/cli.c
test_cli_t_LDADD        = libcliargs.la
check_PROGRAMS         += test_cli.t
TESTS                  += test_cli.t tests/system/cli.py tests/system/manpage.py
SYSTEM_TESTS           += tests/system/cli-silence.py
EXTRA_DIST             += tests/system/cli.py tests/system/cli-silence.py tests/system/fakebroker.py \
	tests/system/manpage.py
