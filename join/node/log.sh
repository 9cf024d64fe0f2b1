# log.sh - what the machine wrote while it booted, and what our scripts wrote: the last lines of each
#
# Read-only.  Lines are cut, and what looks like a secret is masked, before they leave the machine.

gpub_log_of() {
  [ -r "$2" ] || return 0
  tail -c 65536 "$2" | tail -n 100 | cut -c1-300 | gpub_mask | sed "s/^/log=$1 /"
}

gpub_log() {
  gpub_log_of cloud-init /var/log/cloud-init-output.log
  gpub_log_of bootstrap /var/log/gpubroker-bootstrap.log
  echo done=1
}
