# runtime.sh - k0s and the NVIDIA container runtime: fetched, configured, installed as a service, started
#
# Each step looks, acts when it must, and looks again: a second run finds everything in place.  Which k0s it is,
# the role's own file says: ROLE, SERVICE, UNIT, SYSINFO, gpub_wanted_args, gpub_credentials, gpub_void_credentials.

K0S=/usr/local/bin/k0s
DROPIN=/etc/k0s/containerd.d/10-gpubroker-nvidia.toml
CONFIG_CHANGED=

# ------------------------------------------------------------------------------------------------ packages

# Waits for whoever holds dpkg; kills nobody.
gpub_apt() {
  command -v apt-get >/dev/null 2>&1 || gpub_fail package-missing "$1 is missing, and there is no apt-get to install it"
  systemctl stop apt-daily.timer apt-daily-upgrade.timer 2>/dev/null
  began=$(gpub_ms)
  for verb in update "install -y --no-install-recommends $1"; do
    while ! apt-get -q -o DPkg::Lock::Timeout="${APT_WAIT_S:-600}" -o Acquire::Retries=3 $verb >"$DIR/apt" 2>&1 9>&-; do
      cat "$DIR/apt"
      if ! grep -Eq 'Could not get lock|Unable to (acquire|lock)' "$DIR/apt"; then
        [ "$verb" = update ] && break
        gpub_fail "$2" "apt-get cannot install $1: $(grep '^E:' "$DIR/apt" | head -n 1)"
      fi
      [ $(($(gpub_ms) - began)) -lt $((${APT_WAIT_S:-600} * 1000)) ] ||
        gpub_fail apt-lock-timeout "another program held the package locks for ${APT_WAIT_S:-600} s"
      gpub_wait_note 'another program holds the package locks'
      sleep 5
    done
  done
  CHANGED=$((CHANGED + 1))
}

gpub_find_runtime() {
  for path in /usr/bin/nvidia-container-runtime /usr/local/nvidia/toolkit/nvidia-container-runtime; do
    if [ -x "$path" ]; then
      echo "$path"
      return 0
    fi
  done
  return 1
}

gpub_drop_in() {
  if [ "$(gpub_minor)" -ge 36 ]; then
    version=3
    plugin=io.containerd.cri.v1.runtime
  else
    version=2
    plugin=io.containerd.grpc.v1.cri
  fi
  cat <<GPUB_TOML
version = $version
[plugins."$plugin".containerd]
  default_runtime_name = "nvidia"
[plugins."$plugin".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
[plugins."$plugin".containerd.runtimes.nvidia.options]
  BinaryName = "$1"
  SystemdCgroup = false
GPUB_TOML
}

# Before k0s starts.  Without its binary a default runtime fails every pod, so the binary comes first.
gpub_runtime() {
  DROPIN_CHANGED=
  if [ "${GPU_COUNT:-0}" = 0 ]; then
    [ -e "$DROPIN" ] && rm -f "$DROPIN" && CHANGED=$((CHANGED + 1)) DROPIN_CHANGED=1
    return 0
  fi
  before=$CHANGED
  gpub_step runtime 'the NVIDIA container runtime'
  path=$(gpub_find_runtime) || {
    gpub_apt nvidia-container-toolkit toolkit-missing
    path=$(gpub_find_runtime) || gpub_fail toolkit-missing 'nvidia-container-runtime is not there after its installation'
  }
  if gpub_drop_in "$path" | gpub_put "$DROPIN" 0644; then
    CHANGED=$((CHANGED + 1))
    DROPIN_CHANGED=1
  fi
  gpub_ok_since "$before"
}

# ---------------------------------------------------------------------------------------------------- k0s

gpub_have_k0s() {
  [ -x "$K0S" ] && [ "$(timeout 20 "$K0S" version 2>/dev/null 9>&- | head -n 1)" = "$K0S_VERSION" ] || return 1
  [ -z "$SUM" ] || [ "$(sha256sum <"$K0S" | cut -d' ' -f1)" = "$SUM" ]
}

gpub_k0s_url() {
  encoded=$(echo "$K0S_VERSION" | sed 's/+/%2B/')
  echo "${K0S_URL:-https://github.com/k0sproject/k0s/releases/download/%v/k0s-%v-%a}" | sed "s/%v/$encoded/g; s/%a/$ARCH/g"
}

gpub_fetch() { curl -fsSL --proto =https,http --connect-timeout 15 --retry 3 -m "$3" -o "$2" "$1" 2>"$DIR/curl"; }

# No sum of our own: the release's list, over TLS, is better than nothing, and said.
gpub_published_sum() {
  gpub_fetch "${url%/*}/sha256sums.txt" "$DIR/sums" 60 || gpub_fail k0s-checksum \
    "no checksum is configured for k0s $K0S_VERSION $ARCH, and ${url%/*}/sha256sums.txt cannot be read"
  SUM=$(awk -v name="k0s-$K0S_VERSION-$ARCH" '{ sub("^\\*", "", $2) } $2 == name { print $1 }' "$DIR/sums")
  [ -n "$SUM" ] || gpub_fail k0s-checksum "the release's sha256sums.txt does not list k0s-$K0S_VERSION-$ARCH"
  gpub_warn "k0s $K0S_VERSION was checked against the release's own list, not a configured sum"
}

gpub_binary() {
  before=$CHANGED
  gpub_step k0s "k0s $K0S_VERSION"
  case $(uname -m) in
    x86_64) ARCH=amd64 SUM=${K0S_SHA256_AMD64-} ;;
    *) ARCH=arm64 SUM=${K0S_SHA256_ARM64-} ;;
  esac
  if ! gpub_have_k0s; then
    gpub_active && gpub_fail k0s-upgrade "another k0s than $K0S_VERSION runs here: drain and leave first"
    command -v curl >/dev/null 2>&1 || gpub_apt curl package-missing
    url=$(gpub_k0s_url)
    [ -n "$SUM" ] || gpub_published_sum
    mkdir -p "${K0S%/*}"
    gpub_fetch "$url" "$K0S.gpub-tmp" 900 || {
      rm -f "$K0S.gpub-tmp"
      gpub_fail k0s-download "cannot download $url: $(head -c 200 "$DIR/curl")"
    }
    got=$(sha256sum <"$K0S.gpub-tmp" | cut -d' ' -f1)
    if [ "$got" != "$SUM" ]; then
      rm -f "$K0S.gpub-tmp"
      gpub_fail k0s-checksum "$url has sha256 $got, $SUM was expected"
    fi
    chmod 0755 "$K0S.gpub-tmp" && mv "$K0S.gpub-tmp" "$K0S"
    CHANGED=$((CHANGED + 1))
    gpub_have_k0s || gpub_fail k0s-download "what $url holds does not say it is $K0S_VERSION"
  fi
  gpub_sysinfo
  gpub_ok_since "$before"
}

gpub_sysinfo() {
  gpub_active && return 0
  timeout 60 "$K0S" sysinfo $SYSINFO -o json >"$DIR/sysinfo" 2>"$DIR/sysinfo.err" 9>&- && return 0
  bad=$(tr -d '\n' <"$DIR/sysinfo" | sed 's/},* *{/}\n{/g' | grep -E '"category": *"(rejected|error)"' |
    sed -n 's/.*"displayName": *"\([^"]*\)".*"message": *"\([^"]*\)".*/\1: \2/p' | head -n 5 | tr '\n' ';')
  [ -z "$bad" ] || gpub_fail k0s-sysinfo "k0s refuses this machine: $bad"
  gpub_warn "k0s sysinfo failed: $(head -c 200 "$DIR/sysinfo.err")"
}

gpub_wipe() {
  [ -e "$1" ] || return 0
  shred -u "$1" 2>/dev/null || rm -f "$1"
}

# ------------------------------------------------------------------------------------------------- service

gpub_unit_args() {
  sed -n "s/^ExecStart=[^ ]* $ROLE *//p" "$UNIT" | tr -d "\"'" | sed 's/%%/%/g' | tr ' ' '\n' |
    sed 's/^--single$/--single=true/' | grep .
}

gpub_install() {
  before=$CHANGED
  gpub_step install "the service of node $NODE_NAME"
  gpub_credentials
  gpub_wanted_args | sort >"$DIR/wanted"
  if [ -e "$UNIT" ] && gpub_unit_args | sort | cmp -s - "$DIR/wanted"; then
    gpub_ok_since "$before"
    return 0
  fi
  set -- "$ROLE"
  while read -r word; do set -- "$@" "$word"; done <"$DIR/wanted"
  if [ -e "$UNIT" ]; then
    systemctl stop "$SERVICE"
    set -- "$@" --force
  fi
  "$K0S" install "$@" >"$DIR/install" 2>&1 9>&- || gpub_fail k0s-install "k0s install: $(tail -n 1 "$DIR/install")"
  systemctl daemon-reload
  CHANGED=$((CHANGED + 1))
  gpub_ok_since "$before"
}

# k0s ends with 1 whatever happened: only its text tells.
gpub_diagnose() {
  text=$(journalctl -u "$SERVICE" -n 80 --no-pager -o cat 2>/dev/null)
  case $text in
    *'illegal base64'*|*'gzip: invalid header'*|*'wrong token type'*) code=token-invalid ;;
    *Unauthorized*) code=token-expired ;;
    *x509*|*CERTIFICATE_VERIFY_FAILED*) code=api-x509 ;;
    *'connection refused'*|*'i/o timeout'*|*'no route to host'*|*'Connection refused'*) code=egress ;;
    *'no such host'*|*'server misbehaving'*) code=dns ;;
    *configSnippets*|*'unsupported config version'*|*'failed to start containerd'*) code=containerd-config ;;
    *) code=$1 ;;
  esac
  printf '%s\n' "$text" | tail -n 80
  last=$(printf '%s\n' "$text" | grep -E 'Error|rror:' | tail -n 1 | gpub_mask | cut -c1-200)
  systemctl stop "$SERVICE"
  gpub_void_credentials
  gpub_fail "$code" "$2: ${last:-no word from k0s}"
}

gpub_start() {
  before=$CHANGED
  gpub_step start "k0s $ROLE"
  if gpub_active && [ -n "$DROPIN_CHANGED$CONFIG_CHANGED" ]; then
    systemctl restart "$SERVICE" 9>&-
  elif ! gpub_active; then
    systemctl reset-failed "$SERVICE" 2>/dev/null
    "$K0S" start >"$DIR/start" 2>&1 9>&- || grep -q 'already running' "$DIR/start" ||
      gpub_fail k0s-start "k0s start: $(tail -n 1 "$DIR/start")"
    CHANGED=$((CHANGED + 1))
  fi
  gpub_ok_since "$before"
}
