"""four.py - four fake clouds, a clock that goes ahead, and brokers for whom every machine is good

    with Four() as world, world.broker() as b:
        world.listed(b); world.clock.advance(600); world.clouds["aws"].faults(...)

Machines answer through ready_runner.py: what is asked is what the books do, not the machines.
"""
import contextlib
import os
import struct
import tempfile
import time

from broker import BUILD, KEY, Broker, Cloud, until

NAMES = ("shadeform", "hyperstack", "nebius", "aws")
HOUR_MS = 3600000
# Hyperstack's plugin asks at most 500 times a minute: polls are no faster than that leaves room for.
TIMES = ("poll=300,gone=100,retry_min=30,retry_max=400,ssh_retry=100,stable=50,create=2000,call=2000,listing=4000,"
         "restart=50,lag=1000,comeback=3000")


def account(cloud):
    """Plenty of calls a second, and whatever this fake needs besides."""
    more = {"rate": 1000.0}
    if cloud.name == "aws":
        more.update(regions=["us-east-1"], secrets={"access_key_id": "AKIAFAKEFAKEFAKEFAKE", "secret_access_key": KEY})
    return cloud.provider(**more)


class Clock:
    """The clock of the brokers and of every cloud; it only goes forward."""

    def __init__(self, path, clouds):
        self.path, self.clouds, self.ahead = path, clouds, 0
        self.write()

    def write(self):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("=q", self.ahead * 1000))

    def advance(self, seconds):
        for cloud in self.clouds.values():
            cloud.control("POST", "/advance", {"seconds": seconds})
        self.ahead += seconds
        self.write()

    def now_ms(self):
        return int((time.time() + self.ahead) * 1000)


class Four(contextlib.ExitStack):
    def __enter__(self):
        super().__enter__()
        self.folder = self.enter_context(tempfile.TemporaryDirectory())
        os.symlink(f"{BUILD}/gpubroker-provider", f"{self.folder}/gpubroker-provider")
        os.symlink(f"{os.path.dirname(os.path.abspath(__file__))}/ready_runner.py", f"{self.folder}/gpubroker-runner")
        self.clouds = {n: self.enter_context(Cloud(n)) for n in NAMES}
        self.clock = Clock(f"{self.folder}/clock", self.clouds)
        return self

    def broker(self, names=NAMES, more_limits=None, **more):
        return Broker(*(account(self.clouds[n]) for n in names), times=TIMES,
                      limits={"leases": 5000, "dollars_per_hour": 100000.0, **(more_limits or {})},
                      env={"GPUB_LIBEXECDIR": self.folder, "GPUB_TEST_CLOCK": self.clock.path}, **more)

    def lists(self):
        return {n: c.control("GET", "/counters").get("list", 0) for n, c in self.clouds.items()}

    def look(self, rounds=2, seconds=100):
        """Until every cloud was asked for its machines that many times more: the last but one was answered since."""
        before = self.lists()
        until(lambda: all(n >= before[c] + rounds for c, n in self.lists().items()), seconds,
              f"every cloud listed {rounds} times since {before}")

    def advance(self, b, seconds):
        """With no call in the air: it would have taken that long, and its child be replaced."""
        until(lambda: not sum(p["in_flight"] for p in b.ask("providers")["providers"]), 30, "a moment of rest")
        self.clock.advance(seconds)

    def machines(self):
        return {m["name"]: m for c in self.clouds.values() for m in c.machines()}

    def strays(self):
        """What the clouds keep of ours besides machines: {cloud: rows}."""
        kinds = (("nebius", "/disks", lambda d: True), ("hyperstack", "/addresses", lambda d: not d["foreign"]),
                 ("aws", "/volumes", lambda d: True), ("aws", "/spots", lambda d: d.get("state") == "active"))
        left = {}
        for cloud, path, ours in kinds:
            left.setdefault(cloud, []).extend(d for d in self.clouds[cloud].control("GET", path) if ours(d))
        return {cloud: rows for cloud, rows in left.items() if rows}

    @staticmethod
    def listed(b):
        until(lambda: all(p["offers"]["complete"] for p in b.ask("providers")["providers"]), 30, "every cloud listed")

    @staticmethod
    def rent(b, key, provider, ttl_ms=HOUR_MS):
        """A ready lease there.  When hours have passed, what was offered before is too old."""
        of = {"provider": [provider], "max_price_udollar": 6000000}
        try:
            until(lambda: b.ask("offers", {"filter": of})["matched"], 60, f"offers of {provider}")
        except TimeoutError as e:
            raise TimeoutError(f"{e}; {[p for p in b.ask('providers')['providers'] if p['name'] == provider]}") from None
        x = b.accepted("rent", {"key": key, "ttl_ms": ttl_ms, "filter": of})["lease"]
        b.wait_state(x, "ready")
        return x
