# probe.sh - what a machine is and how far an earlier run came, in one round trip
#
# Read-only, needs no root (it sees less then), bounded: only nvidia-smi can hang, and gets 20 seconds.
# Prints key=value lines; the runner keeps those it knows.  The last line is done=1.

gpub_kv() { printf '%s=%s\n' "$1" "$2"; }

gpub_count_gpus() {
  n=0
  for dev in /sys/bus/pci/devices/*; do
    read -r vendor 2>/dev/null <"$dev/vendor" || continue
    read -r class 2>/dev/null <"$dev/class" || continue
    [ "$vendor" = 0x10de ] || continue
    case $class in 0x03*) n=$((n + 1)) ;; esac
  done
  echo "$n"
}

gpub_probe_marker() {
  marker=/var/lib/gpubroker-node/bootstrap.status
  state=absent
  if [ -r "$marker" ]; then
    while IFS='=' read -r key value; do
      case $key in
        state) state=$value ;;
        code) gpub_kv marker_code "$value" ;;
        step) gpub_kv marker_step "$value" ;;
        hash) gpub_kv marker_hash "$value" ;;
        boot_id) marker_boot=$value ;;
      esac
    done <"$marker"
  fi
  lock=free
  if [ -e /run/lock/gpubroker-bootstrap.lock ] && command -v flock >/dev/null 2>&1; then
    flock -n /run/lock/gpubroker-bootstrap.lock true 2>/dev/null || lock=held
  fi
  # Whoever wrote "running" in an earlier boot runs no more.
  if [ "$state" = running ] && [ "${marker_boot-}" != "$boot" ]; then lock=free; fi
  gpub_kv marker "$state"
  gpub_kv lock "$lock"
}

gpub_probe_os() {
  if [ -r /etc/os-release ]; then
    gpub_kv os "$(. /etc/os-release && echo "${ID-}")"
    gpub_kv os_version "$(. /etc/os-release && echo "${VERSION_ID-}")"
    gpub_kv os_name "$(. /etc/os-release && echo "${PRETTY_NAME-}")"
  fi
  gpub_kv kernel "$(uname -r)"
  gpub_kv arch "$(uname -m)"
  read -r init 2>/dev/null </proc/1/comm && gpub_kv init "$init"
  gpub_kv cgroup "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)"
  command -v systemd-detect-virt >/dev/null 2>&1 && gpub_kv virt "$(systemd-detect-virt 2>/dev/null)"
  reboot=0
  [ -e /run/reboot-required ] && reboot=1
  gpub_kv pending_reboot "$reboot"
}

gpub_probe_size() {
  df -Pk /var/lib 2>/dev/null | while read -r _ size _ free _; do
    case $size in *[!0-9]*|'') continue ;; esac
    gpub_kv disk_gib $((size / 1048576))
    gpub_kv disk_free_gib $((free / 1048576))
  done
  while read -r key value _; do
    case $key in
      MemTotal:) gpub_kv mem_mib $((value / 1024)) ;;
      SwapTotal:) gpub_kv swap $((value / 1024)) ;;
    esac
  done </proc/meminfo
  gpub_kv vcpus "$(nproc 2>/dev/null)"
}

gpub_probe_net() {
  gpub_kv hostname "$(cat /proc/sys/kernel/hostname)"
  read -r id 2>/dev/null </etc/machine-id && gpub_kv machine_id "$id"
  command -v ip >/dev/null 2>&1 || return 0
  gpub_kv addresses "$(ip -o addr show scope global 2>/dev/null | awk '{ printf "%s%s", s, $4; s = " " }')"
  dev=$(ip -o route show default 2>/dev/null | awk '{ for (i = 1; i < NF; i++) if ($i == "dev") { print $(i + 1); exit } }')
  v4=0
  [ -n "$dev" ] && v4=1
  gpub_kv default_v4 "$v4"
  v6=0
  [ -n "$(ip -6 -o route show default 2>/dev/null)" ] && v6=1
  gpub_kv default_v6 "$v6"
  [ -n "$dev" ] && gpub_kv mtu "$(cat "/sys/class/net/$dev/mtu" 2>/dev/null)"
}

gpub_probe_gpu() {
  gpub_kv gpu_pci "$(gpub_count_gpus)"
  if ! command -v nvidia-smi >/dev/null 2>&1; then
    gpub_kv gpu_smi fail:absent
  else
    list=$(timeout -k 2 20 nvidia-smi --query-gpu=index,uuid,name,memory.total,driver_version \
      --format=csv,noheader,nounits 2>&1)
    rc=$?
    case $rc,$list in
      0,*)
        gpub_kv gpu_smi "$(printf '%s\n' "$list" | grep -c .)"
        printf '%s\n' "$list" | sed 's/^/gpu=/'
        printf '%s\n' "$list" | awk -F', ' '
          { names = names sep $3; sep = ";"; if (!least || $4 < least) least = $4; driver = $5 }
          END { print "gpu_names=" names; print "gpu_mem_mib=" least; print "driver=" driver }'
        ;;
      124,*|137,*) gpub_kv gpu_smi fail:hang ;;
      *version\ mismatch*) gpub_kv gpu_smi fail:library-mismatch ;;
      *) gpub_kv gpu_smi "fail:$rc" ;;
    esac
  fi
  runtime=absent
  for path in /usr/bin/nvidia-container-runtime /usr/local/nvidia/toolkit/nvidia-container-runtime; do
    if [ -x "$path" ]; then runtime=$path; break; fi
  done
  gpub_kv runtime "$runtime"
}

gpub_probe_k0s() {
  unit=absent
  for name in k0sworker k0scontroller k3s k3s-agent; do
    [ -e "/etc/systemd/system/$name.service" ] || continue
    unit=$(systemctl is-active "$name" 2>/dev/null)
    gpub_kv restarts "$(systemctl show -p NRestarts --value "$name" 2>/dev/null)"
    node=$(sed -n 's/^ExecStart=.*--hostname-override=\([a-z0-9.-]*\).*/\1/p' "/etc/systemd/system/$name.service" 2>/dev/null)
    [ -n "$node" ] && gpub_kv node_name "$node"
    break
  done
  gpub_kv unit "$unit"
  if read -r by as 2>/dev/null </var/lib/gpubroker-node/installed; then
    gpub_kv installed_by "$by"
    gpub_kv installed_as "$as"
  fi
  dropin=/etc/k0s/containerd.d/10-gpubroker-nvidia.toml
  sum=absent
  [ -r "$dropin" ] && sum=$(sha256sum <"$dropin" | cut -d' ' -f1)
  gpub_kv dropin "$sum"
  conf=absent
  [ -e /var/lib/k0s/kubelet.conf ] && conf=present
  gpub_kv kubeconf "$conf"
  [ -x /usr/local/bin/k0s ] && gpub_kv k0s_version "$(timeout 10 /usr/local/bin/k0s version 2>/dev/null | head -n 1)"
  [ -x /var/lib/k0s/bin/containerd ] &&
    gpub_kv containerd_version "$(timeout 10 /var/lib/k0s/bin/containerd --version 2>/dev/null | awk '{ print $3; exit }')"
  return 0
}

gpub_probe_cloud_init() {
  state=absent
  if command -v cloud-init >/dev/null 2>&1; then
    state=$(timeout 10 cloud-init status 2>/dev/null | sed -n 's/^status: //p')
  fi
  gpub_kv cloud_init "${state:-error}"
}

gpub_probe() {
  PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  export LC_ALL=C
  boot=$(cat /proc/sys/kernel/random/boot_id)
  gpub_kv boot_id "$boot"
  gpub_kv now "$(date +%s)"
  gpub_kv user "$(id -un)"
  gpub_kv uid "$(id -u)"
  how=root
  if [ "$(id -u)" != 0 ]; then how=password-required
  elif [ -n "${SUDO_USER-}" ]; then how=nopasswd; fi
  gpub_kv sudo "$how"
  gpub_probe_marker
  gpub_probe_os
  gpub_probe_size
  gpub_probe_net
  gpub_probe_gpu
  gpub_probe_k0s
  gpub_probe_cloud_init
  echo done=1
}
