# worker.sh - make this machine a worker of a k0s cluster
gpub_worker() {
  gpub_begin
  gpub_done ''
}
