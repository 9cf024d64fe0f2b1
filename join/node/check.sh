# check.sh - is this machine what was bought?
gpub_check() {
  gpub_begin
  gpub_done ''
}
