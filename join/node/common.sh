# common.sh - what every script that changes a machine shares: lock, marker, steps, failures
#
# The broker sets SCRIPT, HASH and the parameters above this text.  What it reads goes to $DIR/out, what
# people read to /var/log/gpubroker-bootstrap.log (0600).  fd 9 is the host-wide lock: whatever is started
# to stay must not inherit it.

# Which broker installed the k0s that is here, and as which node: what may be removed without asking.
OURS=/var/lib/gpubroker-node/installed

gpub_ms() {
  read -r up _ </proc/uptime
  echo "${up%.*}${up#*.}0"
}

gpub_out() { printf '%s\n' "$*" >>"$DIR/out"; }

gpub_say() { printf '%s %s\n' "$(date -u +%H:%M:%S)" "$*"; }

gpub_fact() { gpub_out "$1=$2"; }

gpub_warn() {
  gpub_say "warning: $*"
  WARNINGS="${WARNINGS:+$WARNINGS; }$*"
}

# A bootstrap token, a join token (gzip in base64), key data, any long run of base64.
gpub_mask() {
  sed -e 's/H4sI[A-Za-z0-9+/=_-]*/*****/g' \
    -e 's/\([a-z0-9]\{6\}\)\.[a-z0-9]\{16\}/\1.*****/g' \
    -e 's/\(client-key-data: *\).*/\1*****/' \
    -e 's/[A-Za-z0-9+/]\{80,\}=*/*****/g'
}

gpub_marker() {
  mkdir -p /var/lib/gpubroker-node
  cat >/var/lib/gpubroker-node/bootstrap.status.tmp <<GPUB_MARKER
state=$1
code=$2
step=$STEP
script=$SCRIPT
hash=$HASH
boot_id=$BOOT
started=$STARTED
finished=$3
gpus=${GPU_SEEN-0}
GPUB_MARKER
  mv /var/lib/gpubroker-node/bootstrap.status.tmp /var/lib/gpubroker-node/bootstrap.status
}

gpub_step() {
  STEP=$1
  STEP_MS=$(gpub_ms)
  gpub_say "== $STEP"
  gpub_out "progress=$STEP start 0 $2"
}

gpub_wait_note() { gpub_out "progress=$STEP wait $(($(gpub_ms) - STEP_MS)) $*"; }

gpub_ok() { gpub_out "progress=$STEP ok $(($(gpub_ms) - STEP_MS)) $1"; }

# Ok, changed when anything was changed since CHANGED was $1.
gpub_ok_since() { if [ "$CHANGED" = "$1" ]; then gpub_ok same; else gpub_ok changed; fi; }

# The same facts as a probe, so that the broker need not ask again.
gpub_finish() {
  gpub_fact user "$(cat "$DIR/user")"
  gpub_probe 2>/dev/null | grep -Ev '^(done|user|uid|sudo|lock|marker[a-z_]*)=' >>"$DIR/out"
  gpub_fact changed "$CHANGED"
  [ -n "$WARNINGS" ] && gpub_fact warning "$WARNINGS"
  gpub_out "end=$1 $STEP $2 $3"
  rm -f "$DIR/token" "$DIR/token.conf"
  : >"$DIR/done"
  exit 0
}

# Only these can never get better on this machine or with this configuration.
gpub_retryable() {
  case $1 in
    os-unsupported|sudo-password-required|cidr-overlap|gpu-absent|gpu-count-mismatch|gpu-model-mismatch) echo 0 ;;
    gpu-memory-mismatch|driver-secureboot|token-invalid|cgroup-v1|disk-small|ro-usr|ipv6-only) echo 0 ;;
    foreign-kubernetes|existing-k0s|host-in-use|hostname-invalid|parameter|k0s-checksum|xid|driver-old) echo 0 ;;
    *) echo 1 ;;
  esac
}

gpub_fail() {
  code=$1
  shift
  gpub_say "failed: $code: $*"
  gpub_out "progress=$STEP fail $(($(gpub_ms) - STEP_MS)) $code"
  tail -n +"$LOG_FROM" "$LOG" | tail -n 200 | cut -c1-400 | gpub_mask | sed 's/^/log=/' >>"$DIR/out"
  gpub_marker failed "$code" "$(date +%s)"
  gpub_finish "$code" "$(gpub_retryable "$code")" "$*"
}

# Before anything is said; appending, so that another run that writes now loses no more than a line.
gpub_rotate() {
  [ "$(wc -c <"$LOG")" -gt 1048576 ] || return 0
  tail -c 262144 "$LOG" >"$LOG.old"
  : >"$LOG"
}

gpub_begin() {
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  export PATH LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a
  umask 077
  DIR=/run/gpubroker/$SCRIPT-$HASH
  LOG=/var/log/gpubroker-bootstrap.log
  BOOT=$(cat /proc/sys/kernel/random/boot_id)
  STARTED=$(date +%s)
  CHANGED=0
  WARNINGS=
  cd / || exit 1
  gpub_rotate
  LOG_FROM=$(($(wc -l <"$LOG") + 1))
  gpub_step lock 'wait for other runs on this machine'
  gpub_say "$SCRIPT $HASH, boot $BOOT"
  mkdir -p /run/lock
  exec 9>/run/lock/gpubroker-bootstrap.lock
  if ! flock -n 9; then
    gpub_wait_note 'another run holds the lock'
    flock -w 900 9 || gpub_fail lock-timeout 'another run held the lock for 15 minutes'
  fi
  gpub_marker running '' ''
  gpub_ok same
}

gpub_done() {
  gpub_marker ok '' "$(date +%s)"
  gpub_finish ok 1 ''
}

# Bytes on stdin become file $1 with mode $2 unless it holds them already; true when it changed.
gpub_put() {
  mkdir -p "${1%/*}"
  cat >"$1.gpub-tmp" && chmod "$2" "$1.gpub-tmp" || gpub_fail disk-write "cannot write $1"
  if [ -e "$1" ] && cmp -s "$1" "$1.gpub-tmp" && [ "$(stat -c %a "$1")" = "${2#0}" ]; then
    rm -f "$1.gpub-tmp"
    return 1
  fi
  mv "$1.gpub-tmp" "$1" || gpub_fail disk-write "cannot write $1"
}
