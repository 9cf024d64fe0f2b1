# leave.sh - take the machine out of its cluster
gpub_leave() {
  gpub_begin
  gpub_done ''
}
