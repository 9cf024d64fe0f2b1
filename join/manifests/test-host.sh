# From the node's own network to pods: on the same node, and on another.
bytes () { timeout 5 wget -q -O - "http://$1:8080/big" 2>/dev/null | wc -c; }
try () { n=0; while [ $n -lt 5 ]; do [ "$(bytes "$1")" -eq 65536 ] && return 0; n=$((n + 1)); sleep 1; done; return 1; }

if ! try "$SERVER"; then echo "9 fail the host does not reach a pod of its own node: Cilium on kernel 6.8 does that"
elif [ -z "$PEER" ]; then echo "9 pass from the host to a pod on the same node; there is no second node"
elif try "$PEER"; then echo "9 pass from the host to pods on the same node and on $PEER_NODE"
else echo "9 fail the host reaches a pod of its own node, but none on $PEER_NODE"; fi
