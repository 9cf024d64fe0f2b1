/* hints.c - what a person can do about a failure code */
#include "config.h"

#include <string.h>

#include "core/broker.h"

static const struct {
  const char *code, *hint;
} hints[] = {
  { "address-private", "set externalAddress of the control plane, or allow_private for a lab" },
  { "apt-lock-timeout",
    "something on the machine keeps the package lock; look at it with: gpubroker-cli ssh" },
  { "cgroup-v1",
    "k0s 1.35 and later need cgroup v2: choose another image or an older k0s_version" },
  { "cidr-overlap", "the machine's own network overlaps the pod or service network: choose another "
                    "region or CIDR" },
  { "clock-skew",
    "the machine's clock is wrong and does not heal: check time synchronisation in its image" },
  { "deadline", "raise --deadline, or look at the last step: gpubroker-cli logs" },
  { "disk-small", "ask for more: --disk" },
  { "driver-library-mismatch",
    "the driver was updated under a loaded module: reboot the machine, then retry" },
  { "driver-missing", "the image has no working NVIDIA driver: choose an image that brings one" },
  { "driver-reboot-needed",
    "a new kernel or driver waits for a reboot: reboot the machine, then retry" },
  { "driver-secureboot", "secure boot refuses the driver's module: choose another image" },
  { "egress-api",
    "the machine cannot reach the API server: check its firewall and the control plane's address" },
  { "egress-konnectivity",
    "the machine cannot reach the konnectivity port: expose it beside the API port" },
  { "existing-k0s", "the machine belongs to another cluster: reset it there first" },
  { "foreign-kubernetes",
    "another Kubernetes runs on this machine: remove it or take another machine" },
  { "gpu-absent", "the provider delivered no GPU; this offer is avoided for a while" },
  { "gpu-count-mismatch", "the provider delivered fewer GPUs; this offer is avoided for a while" },
  { "gpu-model-mismatch", "the provider delivered another GPU; this offer is avoided for a while" },
  { "gpu-memory-mismatch",
    "the provider delivered a slice or a smaller card; this offer is avoided for a while" },
  { "gpu-hang", "nvidia-smi hangs: the GPU is sick; take another machine" },
  { "host-in-use", "it is another lease's machine under another address: release that one first" },
  { "hostkey-mismatch",
    "the machine answers with another host key than before: somebody else has its address" },
  { "kubeconfig-unreadable", "check kubeconfig_file of the cluster and its mode" },
  { "not-ours", "look at it at the cloud: it carries another's mark now, or none" },
  { "no-offer", "see why: gpubroker-cli offers --explain" },
  { "offers-exhausted", "see each attempt: gpubroker-cli explain" },
  { "over-budget", "release something, or raise limits.dollars_per_hour" },
  { "limit", "release something, or raise limits.leases" },
  { "port-in-use",
    "a port that a node needs is taken on the machine: gpubroker-cli ssh, then ss -ltnp" },
  { "ssh-auth", "the machine refuses the broker's key: check the user name and that the image runs "
                "cloud-init" },
  { "ssh-refused", "nothing listens on the SSH port yet, or a firewall rejects it" },
  { "ssh-timeout", "no answer on the SSH port: check the provider's firewall" },
  { "sudo-password-required", "the login user needs sudo without a password" },
  { "token-invalid", "the join token expired or was used: retry mints a new one" },
  { "toolkit-missing", "the image has no nvidia-container-runtime and none could be installed" },
  { "ttl", "extend before it expires: gpubroker-cli extend" },
};

const char *
hint_for (const char *code)
{
  for (size_t i = 0; code && i < N_ELEMENTS (hints); i++)
    if (strcmp (hints[i].code, code) == 0)
      return hints[i].hint;
  return NULL;
}
