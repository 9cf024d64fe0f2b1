# docs/: man pages in POD, protocol, schemas
schemadir    = $(pkgdatadir)/schema
dist_schema_DATA = \
	%D%/schema/attempt.json %D%/schema/cluster.json %D%/schema/common.json %D%/schema/cost.json \
	%D%/schema/error.json %D%/schema/event.json %D%/schema/failure.json %D%/schema/filter.json \
	%D%/schema/lease.json %D%/schema/offer.json %D%/schema/operation.json %D%/schema/orphan.json \
	%D%/schema/progress.json %D%/schema/provider.json %D%/schema/rejection.json
exampledir        = $(docdir)/examples
dist_example_DATA = %D%/examples/gpubroker.conf

EXTRA_DIST  += %D%/schema/examples %D%/children.md %D%/protocol.md

TESTS       += tests/system/schema.py
EXTRA_DIST  += tests/system/schema.py tests/system/schemas.py
