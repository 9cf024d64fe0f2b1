# Serves 64 KiB, which is many packets of the largest size.
www=${TMPDIR:-/tmp}/www
mkdir -p "$www" && head -c 65536 /dev/zero | tr '\0' x > "$www/big" && exec httpd -f -p "$POD_IP:8080" -h "$www"
