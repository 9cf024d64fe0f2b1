"""shadeform_catalog.py - a small catalog as Shadeform would list it; prices are invented"""

IMAGES = ["ubuntu22.04_cuda12.6_shade_os", "ubuntu24.04_cuda12.8_shade_os", "ubuntu22.04"]

# cloud, type, upstream type, gpu, gpus, VRAM GB, vCPUs, RAM GB, disk GB, interconnect, nvlink, cents, kind, seats
# a seat: region, what people call it, on-demand stock, spot stock (None: never spot), spot dollars
OSLO, MONTREAL = ("oslo-norway-1", "NO, Oslo"), ("montreal-canada-2", "CA, Montreal")
KANSAS, HELSINKI = ("kansascity-usa-1", "US, Kansas City, MO"), ("helsinki-finland-1", "FI, Helsinki")
PARIS, AUSTIN, WICHITA = ("paris-france-2", "FR, Paris"), ("austin-usa-1", "US, Austin, TX"), ("wichita-usa-1", "US, Wichita, KS")

TABLE = [
    ("hyperstack", "H100", "n3-H100x1", "H100", 1, 80, 28, 180, 850, "pcie", False, 205, "vm",
     [(MONTREAL, True, True, "1.50"), (OSLO, True, None, None)]),
    ("hyperstack", "H100x2", "n3-H100x2", "H100", 2, 80, 60, 360, 1600, "pcie", False, 410, "vm",
     [(MONTREAL, True, False, "3.20")]),
    ("hyperstack", "H100x8_nvlink", "n3-H100x8-NVLink", "H100", 8, 80, 252, 1440, 6500, "pcie", True, 1760, "vm",
     [(MONTREAL, False, None, None)]),
    ("hyperstack", "A100_80G", "n3-A100x1", "A100_80G", 1, 80, 28, 120, 850, "pcie", False, 140, "vm",
     [(MONTREAL, True, True, "0.985"), (OSLO, False, None, None)]),
    ("hyperstack", "L40", "n3-L40x1", "L40", 1, 48, 28, 58, 725, "pcie", False, 105, "vm", [(MONTREAL, True, None, None)]),
    ("hyperstack", "A6000", "n3-RTX-A6000x1", "A6000", 1, 48, 28, 58, 725, "pcie", False, 60, "vm",
     [(OSLO, True, None, None)]),
    ("hyperstack", "cpu_mini", "n1-cpu-mini", "", 0, 0, 4, 16, 100, "", False, 35, "vm", [(OSLO, True, None, None)]),
    ("massedcompute", "A6000", "gpu_1x_a6000", "A6000", 1, 48, 6, 48, 256, "pcie", False, 57, "vm",
     [(KANSAS, True, None, None)]),
    ("massedcompute", "A6000_plus", "gpu_1x_a6000_plus", "A6000", 1, 48, 12, 96, 512, "pcie", False, 63, "vm",
     [(KANSAS, True, None, None)]),
    ("massedcompute", "L40S", "gpu_1x_l40s", "L40S", 1, 48, 26, 126, 625, "pcie", False, 110, "vm",
     [(KANSAS, True, None, None), (WICHITA, False, None, None)]),
    ("massedcompute", "L40Sx4", "gpu_4x_l40s", "L40S", 4, 48, 104, 504, 2500, "pcie", False, 440, "vm",
     [(KANSAS, True, None, None)]),
    ("lambdalabs", "H100_sxm5x8", "gpu_8x_h100_sxm5", "H100_sxm5", 8, 80, 208, 1800, 22000, "sxm5", True, 2392, "vm",
     [(AUSTIN, True, None, None)]),
    ("lambdalabs", "A10", "gpu_1x_a10", "A10", 1, 24, 30, 200, 1400, "pcie", False, 75, "vm", [(AUSTIN, True, None, None)]),
    ("lambdalabs", "GH200", "gpu_1x_gh200", "GH200", 1, 96, 64, 432, 4000, "sxm5", False, 149, "vm",
     [(WICHITA, True, None, None)]),
    ("nebius", "H100_sxm5x8", "8gpu-128vcpu-1600gb", "H100_sxm5", 8, 80, 128, 1600, 1280, "sxm5", True, 2360, "vm",
     [(HELSINKI, True, True, "14.40")]),
    ("nebius", "H200", "1gpu-16vcpu-200gb", "H200", 1, 141, 16, 200, 1280, "sxm5", False, 350, "vm",
     [(PARIS, True, None, None)]),
    ("nebius", "B200x8", "8gpu-160vcpu-1792gb", "B200", 8, 180, 160, 1792, 5000, "sxm6", True, 4400, "vm",
     [(PARIS, True, True, "23.20")]),
    ("excesssupply", "H100_sxm5x8", "es-h100-8", "H100_sxm5", 8, 80, 192, 1024, 10000, "sxm5", True, 1592, "baremetal",
     [(WICHITA, True, None, None)]),
    ("excesssupply", "RTX4090", "es-4090-1", "RTX4090", 1, 24, 16, 64, 500, "pcie", False, 39, "vm",
     [(WICHITA, True, None, None)]),
    ("excesssupply", "RTX4090x8", "es-4090-8", "RTX4090", 8, 24, 96, 512, 4000, "pcie", False, 312, "vm",
     [(WICHITA, True, None, None)]),
    ("runpod", "RTX4090", "NVIDIA GeForce RTX 4090", "RTX4090", 1, 24, 8, 32, 100, "pcie", False, 34, "container",
     [(("any", "Any"), True, None, None)]),
    ("verda", "A100_80Gx8", "8A100.176V", "A100_80G", 8, 80, 176, 960, 500, "sxm4", True, 1032, "vm",
     [(HELSINKI, True, True, "5.16")]),
]

# How the driver of the delivered machine calls it.
SMI = {"H100": "NVIDIA H100 PCIe", "H100_sxm5": "NVIDIA H100 80GB HBM3", "H200": "NVIDIA H200", "B200": "NVIDIA B200",
       "A100_80G": "NVIDIA A100 80GB PCIe", "GH200": "NVIDIA GH200 480GB", "A6000": "NVIDIA RTX A6000",
       "RTX4090": "NVIDIA GeForce RTX 4090"}


def smi_name(gpu_type):
    return SMI.get(gpu_type, "NVIDIA " + gpu_type)


def seats(table):
    out = []
    for (region, name), on_demand, spot, price in table:
        out.append({"region": region, "available": on_demand, "display_name": name, "rental_type": "on_demand"})
        if spot is not None:
            out.append({"region": region, "available": spot, "display_name": name, "rental_type": "spot",
                        "hourly_price": price})
    return out


def row(cloud, kind, upstream, gpu, n, vram, vcpus, ram, disk, link, nvlink, cents, deployment, table):
    config = {"memory_in_gb": ram, "storage_in_gb": disk, "vcpus": vcpus, "num_gpus": n, "gpu_type": gpu,
              "interconnect": link, "nvlink": nvlink, "os_options": IMAGES if n else IMAGES[2:],
              "vram_per_gpu_in_gb": vram}
    if n:
        config["gpu_manufacturer"] = "nvidia"
    again = {k: config[k] for k in ("memory_in_gb", "storage_in_gb", "vcpus", "num_gpus", "gpu_type", "interconnect", "nvlink")}
    return dict(again, cloud=cloud, shade_instance_type=kind, cloud_instance_type=upstream, configuration=config,
                hourly_price=cents, deployment_type=deployment, availability=seats(table),
                boot_time={"min_boot_in_sec": 180, "max_boot_in_sec": 900})


def rows():
    return {"instance_types": [row(*r) for r in TABLE]}
