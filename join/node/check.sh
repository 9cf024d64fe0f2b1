# check.sh - is this machine what was bought?  Also the first half of a worker's way.

gpub_check_ms() { echo $(($(date +%s%3N) - $(cut -d' ' -f1 "$DIR/now") - ($(gpub_ms) - $(cut -d' ' -f2 "$DIR/now")))); }

# The broker's clock at the launch, moved on by uptime: no later wait counts as skew.
gpub_check_clock() {
  skew=$(gpub_check_ms)
  gpub_fact clock_skew_ms "$skew"
  [ "${skew#-}" -le 30000 ] && return 0
  for unit in chrony chronyd systemd-timesyncd; do
    systemctl cat "$unit" >/dev/null 2>&1 || continue
    gpub_wait_note "clock is off by $skew ms; $unit shall set it"
    systemctl restart "$unit" 9>&-
    n=0
    while [ "$n" -lt 30 ]; do
      skew=$(gpub_check_ms)
      if [ "${skew#-}" -le 30000 ]; then
        CHANGED=$((CHANGED + 1))
        return 0
      fi
      n=$((n + 1))
      sleep 2
    done
  done
  gpub_fail clock-skew "the clock is off by $skew ms: certificates would be refused; start a time service"
}

gpub_check_disk() {
  want=${DISK_GIB:-0}
  if [ "$want" = 0 ]; then
    want=10
    [ "${GPU_COUNT:-0}" -gt 0 ] && want=30
  fi
  free=$(($(df -Pk /var/lib | awk 'NR == 2 { print $4 }') / 1048576))
  if [ "$free" -lt "$want" ]; then
    other=$(df -Pk -x tmpfs -x devtmpfs -x overlay 2>/dev/null | awk 'NR > 1 && $4 > best { best = $4; at = $6 }
      END { if (at) printf "; %s has %d GiB", at, best / 1048576 }')
    gpub_fail disk-small "/var/lib has $free GiB free, $want GiB are needed$other"
  fi
  used=$(df -Pi /var/lib 2>/dev/null | awk 'NR == 2 { sub("%", "", $5); print $5 }')
  case $used in *[!0-9]*|'') ;; *) [ "$used" -gt 95 ] && gpub_warn "/var/lib has used $used % of its inodes" ;; esac
  return 0
}

# The user's own keys are added and never removed.
gpub_check_keys() {
  [ -n "${SSH_KEYS-}" ] || return 0
  user=$(cat "$DIR/user")
  home=$(getent passwd "$user" | cut -d: -f6)
  [ -d "$home" ] || gpub_fail ssh-keys "user $user has no home folder"
  file=$home/.ssh/authorized_keys
  if [ ! -d "$home/.ssh" ]; then
    mkdir -m 700 "$home/.ssh" && chown "$user:" "$home/.ssh"
  fi
  if [ ! -e "$file" ]; then
    : >"$file" && chown "$user:" "$file"
  fi
  printf '%s\n' "$SSH_KEYS" >"$DIR/keys"
  while read -r key; do
    case $key in ''|'#'*) continue ;; esac
    grep -qxF -- "$key" "$file" && continue
    [ -z "$(tail -c 1 "$file")" ] || echo >>"$file"
    printf '%s\n' "$key" >>"$file"
    CHANGED=$((CHANGED + 1))
  done <"$DIR/keys"
}

# ------------------------------------------------------------------------------------------------- GPUs

gpub_smi() {
  timeout -k 2 "${SMI_TIMEOUT_S:-60}" nvidia-smi "$@" 2>&1 9>&-
}

gpub_secure_boot() {
  if command -v mokutil >/dev/null 2>&1 && mokutil --sb-state 2>/dev/null | grep -q enabled; then
    dmesg 2>/dev/null | grep -Eq 'nvidia.*(module verification failed|Key was rejected)|Key was rejected by service'
    return
  fi
  return 1
}

# Why nvidia-smi does not answer, once waiting is over.
gpub_driver_fault() {
  gpub_secure_boot && gpub_fail driver-secureboot 'secure boot refuses the NVIDIA module'
  [ -e /run/reboot-required ] && gpub_fail driver-reboot-needed 'the machine asks for a reboot before its driver loads'
  if [ -e /lib/modules ] && [ ! -d "/lib/modules/$(uname -r)" ] && [ -n "$(ls /lib/modules)" ]; then
    gpub_fail driver-reboot-needed "no modules for the running kernel $(uname -r): it was upgraded"
  fi
  gpub_fail driver-missing "the PCI bus shows $pci GPU(s), nvidia-smi says: ${list:-nothing, it is not installed}"
}

# Images build or load their driver late: modprobe every 15 s.
gpub_wait_for_driver() {
  began=$(gpub_ms)
  while :; do
    rc=127
    list=
    if command -v nvidia-smi >/dev/null 2>&1; then
      list=$(gpub_smi --query-gpu=name,memory.total,driver_version,mig.mode.current,ecc.errors.uncorrected.volatile.total \
        --format=csv,noheader,nounits)
      rc=$?
    fi
    case $rc,$list in
      0,*) return 0 ;;
      124,*|137,*) gpub_fail gpu-hang "nvidia-smi did not answer in ${SMI_TIMEOUT_S:-60} s: a sick GPU" ;;
      *version\ mismatch*)
        gpub_fail driver-library-mismatch 'the NVIDIA library was upgraded under the loaded module: reboot or reload it'
        ;;
    esac
    list=$(printf '%s' "$list" | head -n 1)
    [ $(($(gpub_ms) - began)) -ge $((${DRIVER_WAIT_S:-600} * 1000)) ] && gpub_driver_fault
    gpub_wait_note 'the driver does not answer yet'
    modprobe nvidia 2>/dev/null
    sleep 15
  done
}

gpub_check_models() {
  n=0
  printf '%s\n' "$list" >"$DIR/gpus"
  while IFS=, read -r name mem driver mig ecc; do
    [ -n "$name" ] || continue
    n=$((n + 1))
    mem=${mem# }
    driver=${driver# }
    if [ -n "${GPU_PATTERN-}" ] && ! printf '%s\n' "$name" | grep -Eiq -- "$GPU_PATTERN"; then
      gpub_fail gpu-model-mismatch "GPU $n is '$name', bought was /$GPU_PATTERN/"
    fi
    case $mem in
      *[!0-9]*|'') gpub_warn "GPU $n does not tell its memory" ;;
      *) [ "$mem" -ge "${GPU_MEM_MIB:-0}" ] ||
        gpub_fail gpu-memory-mismatch "GPU $n has $mem MiB, bought were $GPU_MEM_MIB" ;;
    esac
    case $mig in *Enabled*) gpub_warn "GPU $n arrived with MIG enabled" ;; esac
    case ${ecc# } in *[!0-9]*|''|0) ;; *) gpub_warn "GPU $n has ${ecc# } uncorrected memory errors" ;; esac
  done <"$DIR/gpus"
  [ "$n" = "$GPU_COUNT" ] || gpub_fail gpu-count-mismatch "nvidia-smi shows $n GPU(s), bought were $GPU_COUNT"
  GPU_SEEN=$n
  [ -z "${MIN_DRIVER-}" ] ||
    [ "$(printf '%s\n%s\n' "$MIN_DRIVER" "$driver" | sort -V | head -n 1)" = "$MIN_DRIVER" ] ||
    gpub_fail driver-old "the driver is $driver, at least $MIN_DRIVER was asked for"
}

# 48 double bit error, 63 64 row remapping, 74 NVLink, 79 off the bus, 94 95 contained errors, 119 120 GSP.
gpub_check_xid() {
  xid=$({ dmesg; journalctl -k -b --no-pager; } 2>/dev/null |
    sed -n 's/.*NVRM: Xid ([^)]*): \([0-9]*\).*/\1/p' | grep -Ex '48|63|64|74|79|94|95|119|120' | sort -nu | tr '\n' ' ')
  [ -z "$xid" ] || gpub_fail xid "the kernel logged Xid ${xid% }: hardware faults, return this machine"
}

# On NVSwitch machines nvidia-smi looks healthy while CUDA cannot start.
gpub_check_fabric() {
  began=$(gpub_ms)
  while :; do
    fabric=$(gpub_smi -q | awk '/^ *Fabric$/ { on = 1; next } on && /State/ { sub(".*: *", ""); print; exit }')
    case $fabric in ''|N/A|Completed) break ;; esac
    [ $(($(gpub_ms) - began)) -lt $((${FABRIC_WAIT_S:-180} * 1000)) ] || gpub_fail fabric-manager \
      "the NVLink fabric is '$fabric': nvidia-fabricmanager must run, in exactly the driver's version"
    gpub_wait_note "the fabric is '$fabric'"
    sleep 5
  done
  gpub_fact fabric "${fabric:-absent}"
}

# An unattended upgrade of the library under a loaded module is the classic way to lose a GPU.
gpub_hold_driver() {
  command -v apt-mark >/dev/null 2>&1 || return 0
  apt-mark showhold 2>/dev/null | sort >"$DIR/held"
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'nvidia-*' 'libnvidia-*' 2>/dev/null |
    sed -n 's/^installed //p' | sort | comm -23 - "$DIR/held" >"$DIR/hold"
  [ -s "$DIR/hold" ] || return 0
  xargs apt-mark hold <"$DIR/hold" >/dev/null 2>&1 && CHANGED=$((CHANGED + 1))
}

gpub_check_gpus() {
  [ "${GPU_COUNT:-0}" -gt 0 ] || return 0
  before=$CHANGED
  gpub_step gpu "$GPU_COUNT GPU(s) as bought"
  pci=$(gpub_count_gpus)
  [ "$pci" -gt 0 ] || gpub_fail gpu-absent 'no NVIDIA device is on the PCI bus: broken passthrough'
  [ "$pci" -ge "$GPU_COUNT" ] || gpub_fail gpu-count-mismatch "the PCI bus shows $pci GPU(s), bought were $GPU_COUNT"
  gpub_wait_for_driver
  gpub_check_models
  gpub_check_xid
  gpub_check_fabric
  gpub_hold_driver
  gpub_smi -pm 1 >/dev/null
  if [ ! -e /dev/nvidia-uvm ] && command -v nvidia-modprobe >/dev/null 2>&1; then nvidia-modprobe -u -c=0; fi
  gpub_ok_since "$before"
}

gpub_check_machine() {
  before=$CHANGED
  gpub_step preflight 'what this machine is'
  case $(uname -m) in x86_64|aarch64) ;; *) gpub_fail os-unsupported "no k0s for $(uname -m)" ;; esac
  [ -r /etc/os-release ] || gpub_fail os-unsupported 'there is no /etc/os-release'
  gpub_check_clock
  gpub_check_disk
  gpub_check_keys
  gpub_more_preflight
  gpub_ok_since "$before"
}

gpub_more_preflight() { :; }

# The broker's own key, for a machine that its owner opened with theirs.
gpub_authorise() {
  gpub_begin
  gpub_step authorise 'the key of the broker'
  before=$CHANGED
  gpub_check_keys
  gpub_ok_since "$before"
  gpub_done
}

gpub_check() {
  gpub_begin
  gpub_check_machine
  gpub_check_gpus
  gpub_done
}
