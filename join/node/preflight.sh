# preflight.sh - can this machine be a worker of that cluster, and does it reach it?
#
# A failure here costs seconds; the same fault found by k0s costs minutes and says less.

KUBECONF=/var/lib/k0s/kubelet.conf

gpub_active() { systemctl is-active --quiet "$SERVICE"; }

# ------------------------------------------------------------------------------------- what the token says

gpub_read_token() {
  [ -s "$DIR/token" ] || return 0
  tr -d ' \r\n' <"$DIR/token" | base64 -d 2>/dev/null | gzip -dc 2>/dev/null | head -c 262144 >"$DIR/token.conf"
  grep -q kubelet-bootstrap "$DIR/token.conf" ||
    gpub_fail token-invalid 'the join token does not unpack to a kubeconfig for a worker'
  sed -n 's/.*server"\{0,1\}: *"\{0,1\}\([^ ",}]*\).*/\1/p' "$DIR/token.conf" | head -n 1 >"$DIR/server"
  sed -n 's/.*certificate-authority-data"\{0,1\}: *"\{0,1\}\([A-Za-z0-9+/=]*\).*/\1/p' "$DIR/token.conf" |
    head -n 1 | base64 -d >"$DIR/ca.pem" 2>/dev/null
}

# The CA that the machine trusts already: embedded, or a file that is named.
gpub_joined_ca() {
  data=$(sed -n 's/.*certificate-authority-data"\{0,1\}: *"\{0,1\}\([A-Za-z0-9+/=]*\).*/\1/p' "$KUBECONF" | head -n 1)
  if [ -n "$data" ]; then
    echo "$data" | base64 -d 2>/dev/null
    return
  fi
  file=$(sed -n 's/.*certificate-authority: *"\{0,1\}\([^ "]*\).*/\1/p' "$KUBECONF" | head -n 1)
  [ ! -r "$file" ] || cat "$file"
}

# LEFTOVER: the node of an earlier lease of this very broker, which is over.  Everything else has an owner.
gpub_check_leftovers() {
  [ -e "$UNIT" ] || [ -e "$KUBECONF" ] || return 0
  gpub_is_ours && return 0
  read -r by as 2>/dev/null <"$OURS" || by=
  if [ "$by" = "$OWNER" ] && [ -n "$as" ]; then
    [ "$as" = "${LEFTOVER-}" ] || gpub_fail host-in-use "this machine is the node $as, of another lease of this broker"
    gpub_wait_note "removing what is left of node $as"
    RESET=1
    gpub_leave_stop
    gpub_leave_wipe
    gpub_leave_reset
    gpub_step preflight 'what this machine is'
  elif [ -e "$UNIT" ]; then
    gpub_fail existing-k0s 'a k0s is here that this broker did not install: run k0s stop and k0s reset first'
  fi
}

gpub_check_existing() {
  if [ -e "$KUBECONF" ] && [ -s "$DIR/ca.pem" ]; then
    gpub_joined_ca | tr -d ' \r\n' >"$DIR/joined.pem"
    tr -d ' \r\n' <"$DIR/ca.pem" >"$DIR/wanted.pem"
    [ ! -s "$DIR/joined.pem" ] || cmp -s "$DIR/joined.pem" "$DIR/wanted.pem" || gpub_fail existing-k0s \
      'this machine is a worker of another cluster: stop k0s there and run k0s reset first'
  fi
  for unit in k3s k3s-agent kubelet rke2-agent rke2-server snap.microk8s.daemon-kubelite k0sworker k0scontroller; do
    [ "$unit" != "$SERVICE" ] || continue
    if systemctl is-active --quiet "$unit" || systemctl is-enabled --quiet "$unit" 2>/dev/null; then
      gpub_fail foreign-kubernetes "the unit $unit is here: this machine belongs to another Kubernetes"
    fi
  done
}

# ------------------------------------------------------------------------------------------------ network

gpub_check_ports() {
  gpub_active && return 0
  command -v ss >/dev/null 2>&1 || return 0
  taken=$( { ss -Hltn; ss -Hlun | awk '$4 ~ /:4789$/'; } | awk '{ sub(".*:", "", $4); print $4 }' |
    grep -Ex "10250|10249|10256|179|4789${PORTS-}" | sort -nu | tr '\n' ' ')
  [ -z "$taken" ] || gpub_fail port-in-use "port ${taken% } is taken, and k0s needs it"
}

gpub_check_routes() {
  command -v ip >/dev/null 2>&1 || return 0
  if [ -z "$(ip -4 -o route show default)" ] && [ "${ALLOW_IPV6_ONLY-}" != 1 ]; then
    gpub_fail ipv6-only 'there is no IPv4 default route'
  fi
  gpub_active && return 0
  overlap=$({ ip -4 -o addr show scope global | awk '{ print $4 }'; ip -4 -o route show | awk '{ print $1 }'; } |
    awk -v mine="${POD_CIDR:-10.244.0.0/16} ${SERVICE_CIDR:-10.96.0.0/12}" '
      function first(cidr, a, o) { split(cidr, a, "/"); split(a[1], o, ".")
        return ((o[1] * 256 + o[2]) * 256 + o[3]) * 256 + o[4] }
      function size(cidr, a) { return split(cidr, a, "/") == 2 ? 2 ^ (32 - a[2]) : 1 }
      function base(cidr) { return int(first(cidr) / size(cidr)) * size(cidr) }
      BEGIN { n = split(mine, m, " ") }
      /^[0-9.]+(\/[0-9]+)?$/ { for (i = 1; i <= n; i++)
        if (base($1) < base(m[i]) + size(m[i]) && base(m[i]) < base($1) + size($1)) { print $1 " and " m[i]; exit } }')
  [ -z "$overlap" ] || gpub_fail cidr-overlap "the machine's network overlaps the cluster's: $overlap"
}

gpub_is_address() { case $1 in *:*) return 0 ;; *[!0-9.]*) return 1 ;; esac; }

gpub_check_names() {
  grep -Eq '^[^#]*[[:space:]]localhost([[:space:]]|$)' /etc/hosts 2>/dev/null || {
    echo '127.0.0.1 localhost' >>/etc/hosts
    CHANGED=$((CHANGED + 1))
  }
  for host in "${API_HOST-}" "${KONNECTIVITY_HOST-}"; do
    [ -n "$host" ] && ! gpub_is_address "$host" || continue
    timeout 20 getent hosts "$host" >/dev/null || gpub_fail dns "the name $host does not resolve on this machine"
  done
}

gpub_host_port() { case $1 in *:*) echo "[$1]:$2" ;; *) echo "$1:$2" ;; esac; }

# Any HTTP answer over a chain that the token's CA signed proves name, route, firewall and CA.
gpub_check_api() {
  [ -n "${API_HOST-}" ] || return 0
  command -v curl >/dev/null 2>&1 || gpub_apt curl package-missing
  at=$(gpub_host_port "$API_HOST" "${API_PORT:-6443}")
  set -- --insecure
  [ -s "$DIR/ca.pem" ] && set -- --cacert "$DIR/ca.pem"
  status=$(curl -sS -m 20 --connect-timeout 10 --noproxy '*' "$@" -o /dev/null -w '%{http_code}' "https://$at/version" 2>"$DIR/curl")
  case $? in
    0) gpub_fact api_status "$status" ;;
    6) gpub_fail dns "the API server's name $API_HOST does not resolve here" ;;
    35|51|58|60|77) gpub_fail api-x509 "the API server at $at shows a certificate that the token's CA did not sign" ;;
    *) gpub_fail egress "the API server at $at cannot be reached from this machine: $(head -c 200 "$DIR/curl")" ;;
  esac
}

# bash, since curl only says that a port is open once somebody answers on it.
gpub_reaches() {
  if command -v bash >/dev/null 2>&1; then
    timeout 10 bash -c ': <"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null
  else
    case $(curl -s -m 5 --noproxy '*' -o /dev/null -w '%{time_connect}' "http://$(gpub_host_port "$1" "$2")/") in
      0|0.000000|'') return 1 ;;
    esac
  fi
}

# A closed konnectivity port gives a node that is Ready while its logs and exec fail.
gpub_check_konnectivity() {
  [ -n "${KONNECTIVITY_HOST-}" ] || return 0
  gpub_reaches "$KONNECTIVITY_HOST" "${KONNECTIVITY_PORT:-8132}" || gpub_fail egress-konnectivity \
    "konnectivity at $KONNECTIVITY_HOST port ${KONNECTIVITY_PORT:-8132} cannot be reached from this machine"
}

# ----------------------------------------------------------------------------------------------- preflight

gpub_minor() { echo "$K0S_VERSION" | sed -n 's/^v1\.\([0-9]*\)\..*/\1/p'; }

gpub_check_params() {
  case ${NODE_NAME-} in
    ''|localhost|*[!a-z0-9.-]*|-*|.*|*-|*.) gpub_fail hostname-invalid "'${NODE_NAME-}' is no name for a node" ;;
  esac
  [ "${#NODE_NAME}" -le 63 ] || gpub_fail hostname-invalid "the node name $NODE_NAME is longer than 63"
  K0S_VERSION=$(echo "${K0S_VERSION-}" | sed 's/-k0s\./+k0s./')
  case $K0S_VERSION in v1.[0-9]*.[0-9]*+k0s.[0-9]*) ;; *) gpub_fail parameter "'$K0S_VERSION' is no k0s version" ;; esac
  case ${LABELS-}${TAINTS-} in *[!A-Za-z0-9._/=,:-]*) gpub_fail parameter 'a label or taint has an odd character' ;; esac
}

gpub_more_preflight() {
  gpub_check_params
  gpub_read_token
  gpub_check_leftovers
  gpub_check_existing
  if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
    [ "$(gpub_minor)" -lt 35 ] || gpub_fail cgroup-v1 'k0s 1.35 and later need cgroup v2: boot with systemd.unified_cgroup_hierarchy=1'
    gpub_warn 'cgroup v1'
  fi
  mkdir -p /usr/libexec/k0s 2>/dev/null && touch /usr/libexec/k0s/.gpubroker 2>/dev/null ||
    gpub_fail ro-usr '/usr/libexec/k0s cannot be written: an image-based system'
  rm -f /usr/libexec/k0s/.gpubroker
  swapon --show 2>/dev/null | grep -q . && gpub_warn 'swap is on'
  ufw status 2>/dev/null | grep -q '^Status: active' && gpub_warn 'ufw is active: open UDP 4789 and TCP 10250 between nodes'
  gpub_check_ports
  gpub_check_routes
  gpub_check_names
  gpub_check_api
  gpub_check_konnectivity
}
