# launch.sh - start a run that no dropped link can cut short, or attach to it, and follow it
#
# A run lives in /run/gpubroker/NAME (tmpfs, 0700): script, token, out (lines for the broker), done.  It is a
# transient unit of systemd, so this shell and its connection may end at any time.

gpub_refuse() {
  printf 'end=%s launch %s %s\n' "$1" "$2" "$3"
  exit 0
}

gpub_size() { wc -c <"$DIR/out" 2>/dev/null || echo 0; }

gpub_print() {
  size=$(gpub_size)
  [ "$size" -gt "$OFFSET" ] || return 0
  tail -c +$((OFFSET + 1)) "$DIR/out" | head -c $((size - OFFSET))
  OFFSET=$size
}

gpub_alive() { systemctl is-active --quiet "$UNIT"; }

gpub_names() {
  PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
  DIR=/run/gpubroker/$RUN
  UNIT=gpubroker-bootstrap-$RUN.service
}

# Prints more=BYTES when the time is up, lost=1 when the run has gone without an end.
gpub_follow() {
  gpub_names
  ticks=0
  while :; do
    gpub_print
    if [ -e "$DIR/done" ]; then
      gpub_print
      return 0
    fi
    if [ $((ticks % 10)) = 9 ] && ! gpub_alive && [ ! -e "$DIR/done" ]; then
      echo lost=1
      return 0
    fi
    if [ "$ticks" -ge $((WAIT * 5)) ]; then
      echo "more=$OFFSET"
      return 0
    fi
    ticks=$((ticks + 1))
    sleep 0.2
  done
}

gpub_prepare() {
  rm -rf "$DIR"
  mkdir -p "$DIR" || gpub_refuse run-dir 1 "cannot make $DIR"
  : >"$DIR/out"
  read -r up _ </proc/uptime
  echo "$NOW_MS ${up%.*}${up#*.}0" >"$DIR/now"
  echo "${SUDO_USER:-$(id -un)}" >"$DIR/user"
  gpub_token >"$DIR/token"
  gpub_script >"$DIR/script.tmp" && mv "$DIR/script.tmp" "$DIR/script" || gpub_refuse run-dir 1 "cannot write $DIR/script"
}

gpub_launch() {
  [ "$(id -u)" = 0 ] || gpub_refuse sudo-password-required 0 "user $(id -un) needs a password for sudo, or may not use it"
  gpub_names
  if [ ! -d /run/systemd/system ] || ! command -v systemd-run >/dev/null 2>&1; then
    gpub_refuse os-unsupported 0 'systemd is not running here: a container, or another init'
  fi
  command -v flock >/dev/null 2>&1 || gpub_refuse os-unsupported 0 'flock is missing'
  umask 077
  mkdir -p /run/gpubroker
  exec 8>/run/gpubroker/launch.lock
  flock -w 20 8 || gpub_refuse lock-timeout 1 'another connection is starting a run'
  if gpub_alive && [ ! -e "$DIR/done" ]; then
    echo attached=1
  else
    n=0
    while gpub_alive && [ "$n" -lt 50 ]; do n=$((n + 1)); sleep 0.1; done
    gpub_prepare
    systemctl reset-failed "$UNIT" 2>/dev/null
    systemd-run --quiet --collect --unit="$UNIT" --property=RuntimeMaxSec=3600 /bin/sh -c \
      'umask 077; exec >>/var/log/gpubroker-bootstrap.log 2>&1; exec /bin/sh "$0"' "$DIR/script" 8>&- ||
      gpub_refuse run-start 1 'systemd-run failed'
  fi
  exec 8>&-
  gpub_follow
}
