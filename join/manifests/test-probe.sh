# One line a row: its number, pass, fail or skip, and why.
bytes () { timeout 5 wget -q -O - "http://$1:8080/big" 2>/dev/null | wc -c; }
try () { n=0; while [ $n -lt 5 ]; do [ "$(bytes "$1")" -eq 65536 ] && return 0; n=$((n + 1)); sleep 1; done; return 1; }

if [ -z "$PEER" ]; then
  echo "8 skip there is no second node"
  echo "11 skip there is no second node"
else
  if try "$PEER"; then echo "8 pass 64 KiB over TCP from a pod on $PEER_NODE"
  elif ping -c 1 -W 3 "$PEER" >/dev/null 2>&1; then echo "8 fail small packets reach a pod on $PEER_NODE, 64 KiB over TCP do not: MTU"
  else echo "8 fail nothing reaches a pod on $PEER_NODE: the fabric drops what the CNI sends"; fi
  good=0; i=0
  while [ $i -lt 20 ]; do [ "$(bytes "$SERVICE")" -eq 65536 ] && good=$((good + 1)); i=$((i + 1)); [ $i = 3 ] && [ $good = 0 ] && break; done
  if [ $good = 20 ]; then echo "11 pass 20 of 20 requests to a Service whose endpoint is on $PEER_NODE"
  else echo "11 fail $good of $i requests to a Service whose endpoint is on $PEER_NODE"; fi
fi

if [ -z "$DNS_PODS" ]; then
  echo "10 skip there is no CoreDNS"
else
  bad=
  for ip in $DNS_PODS $DNS_SERVICE; do
    case $(timeout 10 nslookup kubernetes.default.svc.cluster.local "$ip" 2>&1) in
    *"timed out"* | *"no servers"* | *"unreachable"* | *"refused"*) bad="$bad $ip" ;;
    esac
  done
  if [ -z "$bad" ]; then echo "10 pass every CoreDNS pod and the Service answer:" $DNS_PODS $DNS_SERVICE
  else echo "10 fail no answer from$bad"; fi
fi

if timeout 15 wget -q -O /dev/null "$EGRESS" 2>/dev/null; then echo "13 pass $EGRESS"
else echo "13 fail $EGRESS cannot be read from a pod: NAT, MTU or a firewall"; fi
