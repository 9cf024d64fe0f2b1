# The provider plugin of Hyperstack, and what its tests need.
EXTRA_DIST += tests/clouds/hyperstack.py tests/clouds/hyperstack_catalog.py
