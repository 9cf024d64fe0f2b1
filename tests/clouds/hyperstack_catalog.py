"""hyperstack_catalog.py - a small catalog as Hyperstack would list it; prices are invented

Odd on purpose: one GPU is missing in the price book, prices come as numbers and as text, one region has no
environment yet, one image is bound to one flavor, one flavor is for managed Kubernetes only.
"""

REGIONS = [("CANADA-1", "CA"), ("NORWAY-1", "NO"), ("US-1", "US")]

# region, flavor, gpu, gpus, vCPUs, RAM GB, root disk GB, ephemeral GB, stock flag
FLAVORS = [
    ("CANADA-1", "n3-H100x1", "H100-80G-PCIe", 1, 28, 180.0, 100, 750, True),
    ("CANADA-1", "n3-H100x2", "H100-80G-PCIe", 2, 60, 360.0, 100, 1500, True),
    ("CANADA-1", "n3-H100x4", "H100-80G-PCIe", 4, 124, 720.0, 100, 3200, True),
    ("CANADA-1", "n3-H100x8-NVLink", "H100-80G-PCIe-NVLink", 8, 252, 1440.0, 100, 6500, False),
    ("CANADA-1", "n3-H100x1-k8s", "H100-80G-PCIe", 1, 28, 180.0, 100, 750, True),
    ("CANADA-1", "n3-A100x1", "A100-80G-PCIe", 1, 28, 120.0, 100, 750, True),
    ("CANADA-1", "n3-L40x1", "L40", 1, 28, 58.5, 100, 625, True),
    ("CANADA-1", "n1-cpu-small", "", 0, 4, 4.0, 100, 0, True),
    ("NORWAY-1", "n3-H100x1", "H100-80G-PCIe", 1, 28, 180.0, 100, 750, True),
    ("NORWAY-1", "n3-RTX-A6000x1", "RTX-A6000", 1, 28, 58.0, 100, 725, True),
    ("NORWAY-1", "n1-cpu-small", None, 0, 4, 4.0, 100, 0, True),
    ("US-1", "n3-H200x8-SXM5", "H200-141G-SXM5", 8, 192, 1800.0, 100, 32000, True),
    ("US-1", "n3-A100x1", "A100-80G-PCIe", 1, 28, 120.0, 100, 750, True),
]

PRICES = [("H100-80G-PCIe", "1.900000000"), ("H100-80G-PCIe-NVLink", 1.95), ("A100-80G-PCIe", 1.35), ("L40", "1.0"),
          ("RTX-A6000", 0.5), ("RTX-A4000", "0E-9"), ("vCPU (cpu-only-flavors)", 0.01), ("RAM (cpu-only-flavors)", "5.0E-3"),
          ("Cloud-SSD", 0.00009), ("PublicIP", 0.0067)]

# region, model, available, {configuration: machines}
STOCKS = [
    ("CANADA-1", "H100-80G-PCIe", "10+", {"1x": 12, "2x": 2, "4x": 0, "8x": 0, "10x": 0}),
    ("CANADA-1", "H100-80G-PCIe-NVLink", "0", {"8x": 0}),
    ("CANADA-1", "A100-80G-PCIe", "25+", {"1x": 30, "2x": 12}),
    ("CANADA-1", "L40", "3", {"2x": 1}),
    ("NORWAY-1", "H100-80G-PCIe", "100+", {"1x": 100}),
    ("NORWAY-1", "RTX-A6000", "4", {"1x": 4}),
    ("US-1", "H200-141G-SXM5", "10+", {"8x": 1}),
    ("US-1", "A100-80G-PCIe", "1", {"1x": 1}),
]

IMAGES = [("Ubuntu Server 22.04 LTS R535 CUDA 12.2", None), ("Ubuntu Server 22.04 LTS R535 CUDA 12.2 with Docker", None),
          ("Ubuntu Server 22.04 LTS R570 CUDA 12.8", None), ("Ubuntu Server 24.04 LTS R570 CUDA 12.8", None),
          ("Ubuntu Server 24.04 LTS R590 CUDA 13.1", "n3-H200x8-SXM5"), ("Ubuntu Server 24.04 LTS (Noble Numbat)", None),
          ("Windows Server 2022 R580 CUDA 13.0", None)]

# How the driver of the delivered machine calls it.
SMI = {"H100-80G-PCIe": "H100 PCIe", "H100-80G-PCIe-NVLink": "H100 PCIe", "A100-80G-PCIe": "A100 80GB PCIe", "L40": "L40",
       "RTX-A6000": "RTX A6000", "H200-141G-SXM5": "H200"}
VRAM = {"H100-80G-PCIe": 80, "H100-80G-PCIe-NVLink": 80, "A100-80G-PCIe": 80, "L40": 48, "RTX-A6000": 48, "H200-141G-SXM5": 141}
WHEN = "2026-02-01T09:00:00"


def flavors():
    groups = {}
    for n, (region, name, gpu, count, cpu, ram, disk, ephemeral, stock) in enumerate(FLAVORS):
        groups.setdefault((region, gpu), []).append({
            "id": 90 + n, "name": name, "display_name": None, "region_name": region, "cpu": cpu, "ram": ram, "disk": disk,
            "ephemeral": ephemeral, "gpu": gpu, "gpu_count": count, "stock_available": stock, "created_at": WHEN,
            "labels": [], "features": {}})
    return [{"gpu": gpu, "region_name": region, "flavors": rows} for (region, gpu), rows in groups.items()]


def pricebook():
    return [{"id": 10 + n, "name": name, "value": value, "original_value": value, "discount_applied": False,
             "start_time": None, "end_time": None} for n, (name, value) in enumerate(PRICES)]


def stocks():
    return [{"region": region, "stock-type": "GPU", "models": [
        {"model": model, "available": available, "planned_7_days": None, "planned_30_days": "25+", "planned_100_days": None,
         "configurations": configurations} for r, model, available, configurations in STOCKS if r == region]}
            for region, _ in REGIONS]


def image(n, region, name, only):
    restrictions = {"has_flavor_restrictions": bool(only), "restriction_type": "hard" if only else None,
                    "compatible_flavors": [{"flavor_id": 1, "flavor_name": only, "link_type": "hard"}] if only else []}
    return {"id": n, "name": name, "version": name.split(" Server ")[1], "type": name.split()[0], "region_name": region,
            "size": 14000000000, "display_size": "14.0 GB", "description": "", "is_public": True, "labels": [],
            "flavor_restrictions": restrictions}


def images():
    return [{"region_name": region, "type": kind, "logo": "", "images": [
        image(100 * r + n, region, name, only) for n, (name, only) in enumerate(IMAGES) if name.startswith(kind)]}
            for r, (region, _) in enumerate(REGIONS) for kind in ("Ubuntu", "Windows")]


def regions():
    return [{"id": n + 1, "name": name, "description": "", "country": country, "green_status": "GREEN", "features": {}}
            for n, (name, country) in enumerate(REGIONS)]


def everything():
    return {"regions": regions(), "flavors": flavors(), "pricebook": pricebook(), "stocks": stocks(), "images": images()}
