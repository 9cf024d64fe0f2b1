"""fakepods.py - runs the containers of a FakeNode's pods as processes of this machine, with busybox for their tools

    node.pods = Pods(node, ["198.51.100.21", ...])     before node.start()

Addresses must be on an interface of the test's own network namespace.  What a container says is what its script
really printed; only the isolation is missing.  Dns answers what CoreDNS would, Proxy is kube-proxy for one Service.
"""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

BUSYBOX = shutil.which("busybox")


def missing():
    return None if BUSYBOX else "busybox is not installed"


class Pods:
    def __init__(self, node, addresses, nvidia_smi=None):
        self.node, self.free = node, list(addresses)
        self.images_missing, self.gpus_busy = set(), False
        self.proxies, self.drop = {}, 0
        self.unreachable = None  # tell this address instead of the one that is served
        self.dir = tempfile.mkdtemp(prefix="gpub-pods-")
        self.tools = os.path.join(self.dir, "bin")
        os.mkdir(self.tools)
        subprocess.run([BUSYBOX, "--install", "-s", self.tools], check=True)
        if nvidia_smi:
            with open(os.path.join(self.tools, "nvidia-smi"), "w") as f:
                f.write(nvidia_smi)
            os.chmod(f.name, 0o755)
        self.running = {}

    def key(self, pod):
        return pod["metadata"]["namespace"], pod["metadata"]["name"]

    def path(self, key):
        return os.path.join(self.dir, "-".join(key))

    def log(self, namespace, name):
        try:
            with open(self.path((namespace, name)), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def tell(self, key, **status):
        self.node.api.merge("/api/v1/namespaces/{}/pods/{}/status".format(*key), {"status": status})

    def sync(self):
        seen = set()
        for pod in self.node.api.get("/api/v1/pods", fieldSelector="spec.nodeName=" + self.node.name_)["items"]:
            key = self.key(pod)
            if "gpubroker.io/test" not in pod["metadata"].get("labels", {}):
                continue
            seen.add(key)
            if "deletionTimestamp" in pod["metadata"]:
                self.kill(key)
            elif key not in self.running:
                self.begin(key, pod)
            else:
                self.ended(key)
        for key in set(self.running) - seen:  # deleted without grace
            self.kill(key)

    def begin(self, key, pod):
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        limits = container.get("resources", {}).get("limits", {})
        if container["image"] in self.images_missing:
            self.tell(key, phase="Pending", containerStatuses=[{
                "name": "test", "image": container["image"], "imageID": "", "ready": False, "restartCount": 0,
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": f"cannot pull {container['image']}"}}}])
            self.running[key] = None
            return
        if limits and self.gpus_busy:
            self.tell(key, phase="Failed", reason="UnexpectedAdmissionError", message="no GPU is free")
            self.running[key] = None
            return
        address = self.node.kubelet if spec.get("hostNetwork") else self.free.pop(0)
        env = {"PATH": self.tools, "TMPDIR": self.dir}
        for e in container.get("env", []):
            env[e["name"]] = address if "valueFrom" in e else e.get("value", "")
        command = [BUSYBOX, *container["command"]]
        for mount in container.get("volumeMounts", []):
            place = os.path.join(self.dir, "volume")
            os.makedirs(place, exist_ok=True)
            command = [c.replace(mount["mountPath"], place) for c in command]
        with open(self.path(key), "wb") as out:
            proc = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                    start_new_session=True)
        self.running[key] = proc
        try:
            proc.wait(0.3)  # what cannot begin at all never runs
            return
        except subprocess.TimeoutExpired:
            pass
        self.expose(key, address)
        told = self.unreachable or address
        self.tell(key, phase="Running", podIP=told, podIPs=[{"ip": told}], hostIP=self.node.kubelet)

    def expose(self, key, address):
        """What kube-proxy does for a Service of the pod's name."""
        service = self.node.api.find("/api/v1/namespaces/{}/services/{}".format(*key))
        if service:
            self.proxies[key] = Proxy(service["spec"]["clusterIP"], address, drop=self.drop)
            self.proxies[key].start()

    def ended(self, key):
        proc = self.running[key]
        if proc and proc.poll() is not None:
            self.running[key] = None
            self.tell(key, phase="Succeeded" if proc.returncode == 0 else "Failed",
                      message=f"exit {proc.returncode}")

    def kill(self, key):
        proc = self.running.get(key)
        if proc and proc.poll() is None:
            os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()

    def stop(self):
        for key in list(self.running):
            self.kill(key)
        for proxy in self.proxies.values():
            proxy.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


def own(address):
    """Gives this network namespace an address."""
    subprocess.run(["ip", "address", "replace", address + "/32", "dev", "lo"], check=True)


class Dns(threading.Thread):
    """Answers every question with NXDOMAIN: whoever hears that has been heard."""

    def __init__(self, address):
        super().__init__(daemon=True)
        own(address)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, 53))

    def run(self):
        while True:
            try:
                question, sender = self.sock.recvfrom(512)
                self.sock.sendto(question[:2] + b"\x81\x83" + question[4:6] + b"\0\0" * 3 + question[12:], sender)
            except OSError:
                return

    def stop(self):
        self.sock.close()


class Proxy(threading.Thread):
    """From a Service's address to one pod; drop: every N-th connection goes nowhere."""

    def __init__(self, address, target, port=8080, drop=0):
        super().__init__(daemon=True)
        own(address)
        self.target, self.drop, self.n = target, drop, 0
        self.sock = socket.create_server((address, port))

    def run(self):
        while True:
            try:
                inner, _ = self.sock.accept()
            except OSError:
                return
            self.n += 1
            if self.drop and self.n % self.drop == 0:
                inner.close()
                continue
            threading.Thread(target=self.carry, args=(inner,), daemon=True).start()

    def carry(self, inner):
        try:
            with inner, socket.create_connection((self.target, 8080), timeout=10) as outer:
                outer.sendall(inner.recv(65536))
                while chunk := outer.recv(65536):
                    inner.sendall(chunk)
        except OSError:
            pass

    def stop(self):
        self.sock.close()
