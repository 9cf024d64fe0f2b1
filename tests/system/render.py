#!/usr/bin/python3
"""render.py - what `clusters render` prints: right for k0s, parsed by others' parsers, and nobody's name breaks it"""
import json
import os
import sys

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runner_client  # noqa: E402
from broker import Tap  # noqa: E402

t = Tap()
SPOKE = {"name": "spoke-a", "type": "k0smotron", "namespace": "spokes", "control_plane": "cp-a",
         "k0s_version": "v1.34.10+k0s.0", "gpu_stack": "device-plugin"}
kube = runner_client.Runner("kube")


def ask(part, cluster=None, **params):
    call, kube.next = kube.next, kube.next + 1
    kube.items[call] = []
    kube.send(runner_client.CALL, call, json.dumps(
        {"call": "render", "deadline_ms": 5000,
         "args": {"cluster": {**SPOKE, **(cluster or {})}, "part": part, "params": params}}).encode())
    return kube.wait(call, 10)


def text(part, **kw):
    r = ask(part, **kw)
    return r["value"]["text"] if r["kind"] == "ok" else ""


def cluster():
    c = yaml.safe_load(text("cluster"))
    t.eq((c["apiVersion"], c["kind"]), ("k0smotron.io/v1beta2", "Cluster"), "a Cluster of the newest API")
    t.eq(c["metadata"], {"name": "cp-a", "namespace": "spokes"}, "of that name")
    spec = c["spec"]
    t.eq(spec["version"], "v1.34.10-k0s.0", "pinned, as image tags spell it")
    t.eq(spec["service"], {"type": "LoadBalancer", "apiPort": 6443, "konnectivityPort": 8132}, "both ports outside")
    t.ok("externalAddress" not in spec, "a load balancer finds its own address")
    t.eq(spec["persistence"]["persistentVolumeClaim"]["spec"]["resources"]["requests"]["storage"], "5Gi", "it keeps its state")
    t.eq(spec["k0sConfig"]["spec"]["network"],
         {"provider": "calico", "calico": {"mode": "vxlan", "overlay": "Always", "vxlanPort": 4789, "mtu": 1450}},
         "Calico, VXLAN between all nodes")
    c = yaml.safe_load(text("cluster", api="v1beta1", service="NodePort", address="cp.example.net", storage_gib=20, mtu=1392))
    t.eq(c["apiVersion"], "k0smotron.io/v1beta1", "the older API on demand")
    t.eq(c["spec"]["service"], {"type": "NodePort", "apiPort": 30443, "konnectivityPort": 30132}, "node ports in their range")
    t.eq((c["spec"]["externalAddress"], c["spec"]["k0sConfig"]["spec"]["network"]["calico"]["mtu"]), ("cp.example.net", 1392),
         "address and MTU as asked")


def refused():
    for part, cluster, params, want in (
            ("clusters", {}, {}, "did you mean 'cluster'"), ("cluster", {"k0s_version": None}, {}, "needs k0s_version"),
            ("cluster", {"control_plane": None}, {}, "needs control_plane"),
            ("cluster", {}, {"service": "NodePort"}, "needs an address"),
            ("cluster", {}, {"service": "ClusterIP"}, "service is 'ClusterIP'"),
            ("cluster", {}, {"api": "v1"}, "api is 'v1'"), ("prometheus", {}, {}, "needs server")):
        cluster = {k: v for k, v in {**SPOKE, **cluster}.items() if v is not None}
        call, kube.next = kube.next, kube.next + 1
        kube.items[call] = []
        kube.send(runner_client.CALL, call, json.dumps({"call": "render", "args": {
            "cluster": cluster, "part": part, "params": params}}).encode())
        r = kube.wait(call, 10)
        t.ok(r["kind"] == "invalid" and want in r["text"], f"refused: {want}")


def hostile():
    """Values are data: none of them becomes YAML of its own."""
    for evil in ('a"\nkind: Secret', "@namespace@", "{{ x }}", "a: b # c", "'", "\\"):
        c = yaml.safe_load(text("cluster", cluster={"control_plane": evil}, address=evil))
        t.eq((c["kind"], c["metadata"]["name"], c["spec"]["externalAddress"]), ("Cluster", evil, evil), f"a value stays one: {evil!r}")


def addons():
    plugin = yaml.safe_load(text("device-plugin", cluster={"device_plugin_image": "registry.example/dp:v1"}))
    t.eq(plugin["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example/dp:v1", "the device plug-in's image can be set")
    dcgm, service = yaml.safe_load_all(text("dcgm-exporter"))
    pod = dcgm["spec"]["template"]["spec"]
    t.eq(pod["volumes"][0]["hostPath"]["path"], "/var/lib/k0s/kubelet/pod-resources", "dcgm-exporter looks where k0s keeps it")
    t.eq(pod["nodeSelector"], {"nvidia.com/gpu.present": "true"}, "and runs where GPUs are")
    t.eq(service["spec"]["selector"], dcgm["spec"]["selector"]["matchLabels"], "its Service finds it")
    values = yaml.safe_load(text("gpu-operator"))
    t.eq((values["driver"]["enabled"], values["toolkit"]["enabled"]), (False, False), "the operator leaves driver and toolkit alone")
    t.eq(values["hostPaths"]["kubeletRootDir"], "/var/lib/k0s/kubelet", "and knows k0s's kubelet")
    t.eq(yaml.safe_load(text("juicefs"))["kubeletDir"], "/var/lib/k0s/kubelet", "so does JuiceFS")


def seen():
    job = yaml.safe_load(text("prometheus", server="cp.example.net:6443"))["scrape_configs"][0]
    target = next(r for r in job["relabel_configs"] if r.get("target_label") == "__address__")
    t.eq((job["job_name"], target["replacement"]), ("gpubroker-spoke-a", "cp.example.net:6443"), "a scrape job through the API server")
    labels = {r.get("target_label") for r in job["relabel_configs"]}
    t.ok({"cluster", "provider", "lease", "gpu", "region"} <= labels, "with the broker's labels")
    board = json.loads(text("dashboard"))
    asked = " ".join(p["expr"] for panel in board["panels"] for p in panel["targets"])
    t.ok(board["uid"] and len(board["panels"]) >= 6 and "DCGM_FI_DEV_GPU_UTIL" in asked, "a dashboard of them")
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    t.eq(len(set(places)), len(places), "whose panels do not lie on one another")
    t.ok(all("cluster=~" in p["expr"] for panel in board["panels"] for p in panel["targets"]), "each follows the cluster chosen")


for fn in (cluster, refused, hostile, addons, seen):
    t.run(fn)
t.done()
