# leave.sh - take the machine out of its cluster, and leave nothing that would let its next tenant in
#
# RESET=1: the machine is used again, so k0s is removed as well.  authorized_keys stays as it is.

# Is the k0s that is here this lease's?  What another one, or somebody else, installed is not touched.
gpub_is_ours() {
  [ -n "${OWNER-}" ] || return 0
  by=
  as=
  read -r by as 2>/dev/null <"$OURS"
  [ "$by $as" = "$OWNER $NODE_NAME" ] ||
    grep -q -- "^ExecStart=.*--hostname-override=$NODE_NAME[^a-z0-9.-]" /etc/systemd/system/k0sworker.service \
      /etc/systemd/system/k0scontroller.service 2>/dev/null
}

gpub_leave_stop() {
  gpub_step stop 'k0s'
  before=$CHANGED
  for service in k0sworker k0scontroller; do
    if systemctl is-active --quiet "$service"; then
      systemctl stop "$service" || gpub_fail k0s-stop "systemctl cannot stop $service"
      CHANGED=$((CHANGED + 1))
    fi
    if systemctl is-enabled --quiet "$service" 2>/dev/null; then
      systemctl disable --quiet "$service" 2>/dev/null
      CHANGED=$((CHANGED + 1))
    fi
  done
  gpub_ok_since "$before"
}

gpub_leave_wipe() {
  gpub_step wipe 'secrets'
  before=$CHANGED
  find /etc/k0s/join.token /var/lib/k0s/kubelet.conf /var/lib/k0s/kubelet-bootstrap.conf /var/lib/k0s/pki \
    /var/lib/k0s/kubelet/pki /etc/k0s/containerd.d/10-gpubroker-nvidia.toml /etc/k0s/k0s.yaml \
    /var/lib/k0s/manifests/gpubroker ! -type d 2>/dev/null >"$DIR/wipe"
  while read -r file; do
    if [ ! -L "$file" ]; then shred -u "$file" 2>/dev/null; fi
    rm -f "$file"
    CHANGED=$((CHANGED + 1))
  done <"$DIR/wipe"
  gpub_ok_since "$before"
}

gpub_leave_reset() {
  [ "${RESET-}" = 1 ] || return 0
  gpub_step reset 'k0s'
  before=$CHANGED
  units=
  for unit in /etc/systemd/system/k0sworker.service /etc/systemd/system/k0scontroller.service; do
    [ ! -e "$unit" ] || units="$units $unit"
  done
  if [ -x /usr/local/bin/k0s ] && { [ -d /var/lib/k0s ] || [ -n "$units" ]; }; then
    /usr/local/bin/k0s reset >"$DIR/reset" 2>&1 9>&- || gpub_fail k0s-reset "k0s reset: $(tail -n 1 "$DIR/reset")"
    CHANGED=$((CHANGED + 1))
  fi
  for unit in $units; do
    [ -e "$unit" ] || continue
    rm -f "$unit"
    systemctl daemon-reload
    CHANGED=$((CHANGED + 1))
  done
  rm -f "$OURS"
  for link in vxlan.calico kube-bridge; do
    ip link show "$link" >/dev/null 2>&1 && ip link del "$link" && CHANGED=$((CHANGED + 1))
  done
  gpub_ok_since "$before"
}

# The broker's key goes again.  The owner's stay, with the file's owner and mode.
gpub_forget() {
  gpub_begin
  gpub_step forget 'the key of the broker'
  before=$CHANGED
  file=$(getent passwd "$(cat "$DIR/user")" | cut -d: -f6)/.ssh/authorized_keys
  if [ -n "${SSH_KEYS-}" ] && grep -qxF -- "$SSH_KEYS" "$file" 2>/dev/null; then
    cp -p "$file" "$file.gpub" || gpub_fail ssh-keys "cannot write $file"
    grep -vxF -- "$SSH_KEYS" "$file" >"$file.gpub"
    [ $? -le 1 ] && mv "$file.gpub" "$file" || gpub_fail ssh-keys "cannot write $file"
    CHANGED=$((CHANGED + 1))
  fi
  gpub_ok_since "$before"
  gpub_done
}

gpub_leave() {
  gpub_begin
  if gpub_is_ours; then
    gpub_leave_stop
    gpub_leave_wipe
    gpub_leave_reset
  fi
  gpub_done
}
