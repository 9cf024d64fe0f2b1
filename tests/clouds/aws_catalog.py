"""aws_catalog.py - what the fake of AWS sells: regions, zones, types with the errors that the real catalogue has"""

REGIONS = ("us-east-1", "eu-west-1", "ap-south-1")
ZONES = "abc"
GIB_MONTH = "0.0800000000"
IMAGE = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20261101"

OD, SPOT, BLOCK = "on-demand", "spot", "capacity-block"
# type, vCPU, GiB, GPU as the API names it, count, MiB of one, dollars, zones, usage classes
ROWS = (
    ("g4dn.xlarge", 4, 16, "T4", 1, 16384, "0.5260000000", "abc", (OD, SPOT)),
    ("g5.xlarge", 4, 16, "A10G", 1, 22888, "1.0060000000", "abc", (OD, SPOT)),
    ("g5.48xlarge", 192, 768, "A10G", 8, 22888, "16.2880000000", "b", (OD, SPOT)),
    ("g6.xlarge", 4, 16, "L4", 1, 22888, "0.8048000000", "ab", (OD, SPOT)),
    ("g6f.large", 2, 8, "L4", 0, 2861, "0.2020000000", "a", (OD, SPOT)),
    ("g6e.xlarge", 4, 32, "L40S", 1, 45776, "1.8610000000", "ac", (OD, SPOT)),
    ("g7e.2xlarge", 8, 64, "RTX PRO Server 6000", 1, 98304, "3.3600000000", "c", (OD, SPOT)),
    ("g5g.xlarge", 4, 8, "T4g", 1, 16384, "0.4200000000", "ab", (OD, SPOT)),
    ("g4ad.xlarge", 4, 16, "Radeon Pro V520", 1, 8192, "0.3785300000", "abc", (OD, SPOT)),
    ("p4d.24xlarge", 96, 1152, "A100", 8, 40960, "21.9576426840", "bc", (OD, SPOT, BLOCK)),
    ("p5.4xlarge", 16, 256, "H100", 0, 81920, "6.8800000000", "a", (OD, SPOT, BLOCK)),
    ("p5.48xlarge", 192, 2048, "H100", 8, 81920, "55.0400000000", "ab", (OD, SPOT, BLOCK)),
    ("p5en.48xlarge", 192, 2048, "NVIDIA", 8, 144384, "63.2960000000", "a", (OD, BLOCK)),
    ("p6-b300.48xlarge", 192, 4096, "B300", 8, 275040, None, "a", (BLOCK,)),
    ("t3.large", 2, 8, None, 0, 0, "0.0832000000", "abc", (OD, SPOT)),
)
PARTS = {"g6f.large": "0.125"}


def spot_of(price, zone):
    """Zone c is the cheapest, then a."""
    return "%.6f" % (float(price) * {"a": 0.4, "b": 0.5, "c": 0.3}[zone])


def types():
    return [{"type": t, "vcpus": v, "gib": g, "gpu": gpu, "count": n, "mib": mib, "price": price, "zones": list(zones),
             "classes": list(classes), "arch": "arm64" if t.startswith("g5g") else "x86_64",
             "spot": {z: spot_of(price, z) for z in zones} if price and SPOT in classes else {}, "empty": []}
            for t, v, g, gpu, n, mib, price, zones, classes in ROWS]


def everything():
    return {"regions": {r: {"default_vpc": True} for r in REGIONS}, "types": types(), "gib_month": GIB_MONTH}
