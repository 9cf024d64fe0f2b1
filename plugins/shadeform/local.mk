# shadeform
EXTRA_DIST += \
	tests/clouds/fake.py tests/clouds/faults.py tests/clouds/machines.py tests/clouds/spec.py \
	tests/clouds/shadeform.py tests/clouds/shadeform_catalog.py \
	$(NULL)
