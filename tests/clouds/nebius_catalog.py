"""nebius_catalog.py - a small Nebius: tenants, projects, platforms, prices; prices are invented

Odd on purpose: a region that no list of regions has, a platform and a level that are new, a preset without a price, one
project whose region has no advice, more projects than a page holds, images that are deprecated or not ready.
"""

TENANT = "tenant-e00acme"

# id, region, container state
PROJECTS = [("project-e00north", "eu-north1", 1), ("project-u00central", "us-central1", 1),
            ("project-m00moon", "moon-base1", 1)]

# name, GPUs' memory in GB, allowed for preemptibles, presets: name, GPUs, vCPUs, RAM GiB
PLATFORMS = [
    ("gpu-h100-sxm", 80, True, [("1gpu-16vcpu-200gb", 1, 16, 200), ("8gpu-128vcpu-1600gb", 8, 128, 1600)]),
    ("gpu-h200-sxm", 141, True, [("1gpu-16vcpu-200gb", 1, 16, 200)]),
    ("gpu-l40s-a", 48, True, [("1gpu-8vcpu-32gb", 1, 8, 32)]),
    ("gpu-rtx6000-a", 96, False, [("1gpu-24vcpu-218gb", 1, 24, 218)]),
    ("gpu-gb300", 270, True, [("4gpu-144vcpu-936gb", 4, 144, 936)]),
    ("gpu-x999-sxm", 1000, True, [("1gpu-1vcpu-1gb", 1, 1, 1)]),
    ("cpu-d3", 0, False, [("4vcpu-16gb", 0, 4, 16)]),
]

# region: its platforms
SOLD = {"eu-north1": ["gpu-h100-sxm", "gpu-h200-sxm", "gpu-l40s-a", "cpu-d3"],
        "us-central1": ["gpu-h100-sxm", "gpu-h200-sxm", "gpu-gb300", "gpu-rtx6000-a"],
        "moon-base1": ["gpu-h100-sxm", "gpu-x999-sxm"]}

# (platform, preset): dollars on demand, dollars preemptible; None: the calculator knows none
PRICES = {
    ("gpu-h100-sxm", "1gpu-16vcpu-200gb"): ("2.95", "1.25"), ("gpu-h100-sxm", "8gpu-128vcpu-1600gb"): ("23.6", "10"),
    ("gpu-h200-sxm", "1gpu-16vcpu-200gb"): ("3.50", "1.45"), ("gpu-l40s-a", "1gpu-8vcpu-32gb"): ("1.5484", "0.774"),
    ("gpu-rtx6000-a", "1gpu-24vcpu-218gb"): ("1.80", None), ("gpu-gb300", "4gpu-144vcpu-936gb"): ("30", "15"),
    ("gpu-x999-sxm", "1gpu-1vcpu-1gb"): (None, "0"), ("cpu-d3", "4vcpu-16gb"): ("0.1", None),
}
DISK_GIB = "0.0001"  # a GiB-hour

# (region, platform, preset): (data state, available, level) on demand, and preemptible; the rest is FRESH, 8, HIGH
STOCK = {
    ("eu-north1", "gpu-h100-sxm", "8gpu-128vcpu-1600gb"): ((1, 0, 3), (1, 2, 3)),
    ("eu-north1", "gpu-h200-sxm", "1gpu-16vcpu-200gb"): ((1, 0, 4), (2, 5, 2)),
    ("us-central1", "gpu-h200-sxm", "1gpu-16vcpu-200gb"): ((10, 0, 5), (1, 3, 77)),
}
FABRICS = {"eu-north1": ["fabric-2", "fabric-6"], "us-central1": ["us-central1-a"]}

# family, architecture, recommended platforms, driver label, state, deprecated, minimum GiB
IMAGES = [
    ("ubuntu24.04-cuda13.0", 1, ["gpu-h100-sxm", "gpu-h200-sxm", "gpu-l40s-a", "gpu-rtx6000-a"], "580.95.05", 2, False, 40),
    ("ubuntu24.04-cuda12", 1, ["gpu-h100-sxm"], "570.195.03", 2, False, 40),
    ("ubuntu24.04-cuda99.0", 1, ["gpu-h100-sxm"], "999.1", 1, False, 40),
    ("ubuntu24.04-cuda14.0", 1, ["gpu-h100-sxm"], "600.1", 2, True, 40),
    ("ubuntu24.04-cuda13.0-arm64", 2, ["gpu-gb300"], "580.95.05", 2, False, 40),
    ("ubuntu24.04-driverless", 1, ["cpu-d3"], None, 2, False, 10),
]

SMI = {"gpu-h100-sxm": "NVIDIA H100 80GB HBM3", "gpu-h200-sxm": "NVIDIA H200", "gpu-l40s-a": "NVIDIA L40S"}


def everything():
    return {"projects": [list(p) for p in PROJECTS], "sold": SOLD, "images": [list(i) for i in IMAGES],
            "prices": [[*k, *v] for k, v in PRICES.items()], "disk_gib": DISK_GIB,
            "platforms": [[n, m, p, [list(x) for x in presets]] for n, m, p, presets in PLATFORMS],
            "stock": [[*k, *map(list, v)] for k, v in STOCK.items()], "advice": True}
