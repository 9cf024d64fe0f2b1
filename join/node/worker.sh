# worker.sh - make this machine a worker of a k0s cluster; after preflight.sh and runtime.sh

ROLE=worker
SERVICE=k0sworker
SYSINFO=--worker
TOKEN=/etc/k0s/join.token
UNIT=/etc/systemd/system/k0sworker.service

gpub_credentials() {
  [ -e "$KUBECONF" ] && return 0
  [ -s "$DIR/token" ] || gpub_fail token-missing 'this machine has not joined yet, and no join token came'
  mkdir -p "${TOKEN%/*}"
  gpub_put "$TOKEN" 0600 <"$DIR/token" && CHANGED=$((CHANGED + 1))
  return 0
}

# One argument a line, without the quotes that k0s or systemd may put around them.
gpub_wanted_args() {
  printf -- '--token-file=%s\n--kubelet-extra-args=--hostname-override=%s\n' "$TOKEN" "$NODE_NAME"
  [ -z "${LABELS-}" ] || printf -- '--labels=%s\n' "$LABELS"
  [ -z "${TAINTS-}" ] || printf -- '--taints=%s\n' "$TAINTS"
}

gpub_void_credentials() {
  [ -e "$KUBECONF" ] || echo '# not joined; the token that was here is void' | gpub_put "$TOKEN" 0600
}

# Restart=always with ten seconds between never trips systemd's limit: count restarts ourselves.
gpub_join() {
  gpub_step join 'the kubelet gets its certificate'
  began=$(gpub_ms)
  first=$(systemctl show -p NRestarts --value "$SERVICE")
  while ! { [ -e "$KUBECONF" ] && gpub_active; }; do
    restarts=$(($(systemctl show -p NRestarts --value "$SERVICE") - ${first:-0}))
    [ "$restarts" -lt "${CRASH_LIMIT:-5}" ] || gpub_diagnose k0s-crash-loop "k0s ended $restarts times"
    [ $(($(gpub_ms) - began)) -lt $((${WAIT_S:-300} * 1000)) ] ||
      gpub_diagnose join-timeout "the kubelet has no certificate after ${WAIT_S:-300} s"
    sleep 0.3
  done
  gpub_ok same
}

# k0s wants the file to exist, and 1.35.1 wants it to parse; nobody needs what was in it.
gpub_spent_token() {
  if [ "$(gpub_minor)" = 35 ]; then
    printf 'apiVersion: v1\nkind: Config\nclusters:\n- name: k0s\n  cluster: {server: "https://127.0.0.1:6443"}\ncontexts:\n- name: k0s\n  context: {cluster: k0s, user: kubelet-bootstrap}\ncurrent-context: k0s\nusers:\n- name: kubelet-bootstrap\n  user: {token: 000000.0000000000000000}\n' |
      gzip -nc | base64 | tr -d '\n'
  else
    echo '# this machine has joined; the token that was here is used up'
  fi
}

gpub_clean() {
  before=$CHANGED
  gpub_step clean 'the token goes'
  gpub_spent_token >"$DIR/spent"
  if ! cmp -s "$DIR/spent" "$TOKEN"; then
    gpub_wipe "$TOKEN"
    gpub_put "$TOKEN" 0600 <"$DIR/spent"
    CHANGED=$((CHANGED + 1))
  fi
  gpub_ok_since "$before"
}

gpub_worker() {
  gpub_begin
  gpub_check_machine
  gpub_check_gpus
  [ -z "${OWNER-}" ] || echo "$OWNER $NODE_NAME" | gpub_put "$OURS" 0644
  gpub_runtime
  gpub_binary
  gpub_install
  gpub_start
  gpub_join
  gpub_clean
  gpub_done
}
