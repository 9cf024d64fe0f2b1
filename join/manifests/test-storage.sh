# Written, flushed, read again.
if echo gpubroker > /data/test && sync && [ "$(cat /data/test)" = gpubroker ]; then echo "14 pass written and read"
else echo "14 fail the volume is mounted, but cannot be written"; fi
