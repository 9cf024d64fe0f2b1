# standalone.sh - a cluster of this machine alone: control plane and worker in one k0s
#
# Proven here, on the machine, since its API may be reachable through SSH only.

ROLE=controller
SERVICE=k0scontroller
SYSINFO='--controller --worker'
UNIT=/etc/systemd/system/k0scontroller.service
CONFIG=/etc/k0s/k0s.yaml
PORTS='|6443|2380|9443'
MANIFEST=/var/lib/k0s/manifests/gpubroker/device-plugin.yaml

gpub_credentials() { :; }
gpub_void_credentials() { :; }

gpub_wanted_args() {
  printf -- '--single=true\n--config=%s\n--kubelet-extra-args=--hostname-override=%s\n' "$CONFIG" "$NODE_NAME"
  [ -z "${LABELS-}" ] || printf -- '--labels=%s\n' "$LABELS"
}

# The certificate covers the outside address and always 127.0.0.1, where a tunnel ends.
gpub_config_text() {
  printf 'apiVersion: k0s.k0sproject.io/v1beta1\nkind: ClusterConfig\nmetadata:\n  name: k0s\nspec:\n  api:\n'
  [ -z "${PUBLIC_HOST-}" ] || printf '    externalAddress: "%s"\n' "$PUBLIC_HOST"
  printf '    sans:\n    - "127.0.0.1"\n'
  [ -z "${PUBLIC_HOST-}" ] || printf '    - "%s"\n' "$PUBLIC_HOST"
  printf '  telemetry:\n    enabled: false\n'
}

gpub_config() {
  before=$CHANGED
  gpub_step config 'the control plane'
  case ${PUBLIC_HOST-} in *[!A-Za-z0-9.:-]*) gpub_fail parameter "'$PUBLIC_HOST' is no host" ;; esac
  if gpub_config_text | gpub_put "$CONFIG" 0600; then
    CHANGED=$((CHANGED + 1))
    CONFIG_CHANGED=1
  fi
  if [ -n "${MANIFEST_TEXT-}" ]; then
    printf '%s' "$MANIFEST_TEXT" | gpub_put "$MANIFEST" 0644 && CHANGED=$((CHANGED + 1))
  elif [ -e "$MANIFEST" ]; then
    rm -f "$MANIFEST"
    CHANGED=$((CHANGED + 1))
  fi
  gpub_ok_since "$before"
}

gpub_kubectl() { timeout 20 "$K0S" kubectl "$@" 2>"$DIR/kubectl" 9>&-; }

# Until test $1 is true; $2 seconds, code $3, and what it waits for.
gpub_until() {
  began=$(gpub_ms)
  first=$(systemctl show -p NRestarts --value "$SERVICE")
  until "$1"; do
    restarts=$(($(systemctl show -p NRestarts --value "$SERVICE") - ${first:-0}))
    [ "$restarts" -lt "${CRASH_LIMIT:-5}" ] || gpub_diagnose k0s-crash-loop "k0s ended $restarts times"
    [ $(($(gpub_ms) - began)) -lt $(($2 * 1000)) ] || gpub_fail "$3" "$4 after $2 s: $(head -c 200 "$DIR/kubectl")"
    sleep 0.5
  done
}

gpub_is_up() { [ "$(gpub_kubectl get --raw /readyz)" = ok ]; }

gpub_is_ready() {
  [ "$(gpub_kubectl get node "$NODE_NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

gpub_has_dns() {
  case $(gpub_kubectl get pods -n kube-system -l k8s-app=kube-dns -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}') in
    *True*) return 0 ;;
  esac
  return 1
}

gpub_has_gpus() {
  [ "$(gpub_kubectl get node "$NODE_NAME" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}')" = "$GPU_COUNT" ]
}

gpub_ready() {
  gpub_step readyz 'the API server is up'
  gpub_until gpub_is_up "${READYZ_S:-600}" readyz-timeout 'the API server is not ready'
  gpub_ok same
  gpub_step node-ready 'the node is Ready'
  gpub_until gpub_is_ready "${WAIT_S:-300}" node-not-ready 'the node is not Ready'
  gpub_ok same
  gpub_step dns 'CoreDNS is Ready'
  gpub_until gpub_has_dns "${WAIT_S:-300}" dns-down 'no CoreDNS pod is Ready'
  gpub_ok same
  [ "${GPU_COUNT:-0}" != 0 ] && [ -n "${MANIFEST_TEXT-}" ] || return 0
  gpub_step gpus "$GPU_COUNT GPU(s) can be allocated"
  gpub_until gpub_has_gpus "${WAIT_S:-300}" gpu-missing "not $GPU_COUNT GPU(s) allocatable"
  gpub_ok same
}

gpub_standalone() {
  gpub_begin
  gpub_check_machine
  gpub_check_gpus
  [ -z "${OWNER-}" ] || echo "$OWNER $NODE_NAME" | gpub_put "$OURS" 0644
  gpub_runtime
  gpub_binary
  gpub_config
  gpub_install
  gpub_start
  gpub_ready
  gpub_done
}
