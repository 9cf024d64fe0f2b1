"""machines.py - rented machines of a fake cloud: life, nodes, hooks, bill

The status is a function of the fake's clock: settle() brings everything up to now, and is called before and after
each request and five times a second.
"""
import json
import subprocess
import threading
import time
import uuid

TICK = 0.2


class Machine:
    def __init__(self, park, name, tags, price_udollar, request=None, foreign=False, ident=None):
        self.park, self.name, self.tags, self.foreign = park, name, tags, foreign
        self.id, self.request = ident or str(uuid.uuid4()), request
        self.price_udollar = price_udollar
        self.created = park.now()
        self.phase, self.since = 0, self.created
        self.delays = dict(park.cloud.delays)
        self.active = self.ended = self.gone = self.kill_at = self.preempt_at = self.fail_at = None
        self.visible_at = self.created + park.lag
        self.failed, self.stuck, self.details = None, None, ""
        self.node, self.wants_node, self.pooled = None, True, False
        self.held = False  # waits for a node, longer than its phases last
        self.extra = {}  # whatever the cloud itself wants to remember
        self.hook = {}   # what the hooks get to know

    @property
    def status(self):
        cloud = self.park.cloud
        if self.gone:
            return "gone"
        if self.stuck:
            return self.stuck
        if self.ended:
            return cloud.ending
        if self.failed is not None:
            return cloud.error
        return cloud.phases[self.phase] if self.phase < len(cloud.phases) else cloud.running

    def cost_udollar(self):
        if self.active is None:
            return 0
        end = self.ended or self.gone or self.park.now()
        return int(self.price_udollar * max(0, end - self.active) / 3600)

    def billing(self):
        return self.active is not None and self.ended is None and self.gone is None

    def visible(self):
        return self.gone is None and self.park.now() >= self.visible_at

    def truth(self):
        ms = lambda t: None if t is None else int(t * 1000)
        return {"id": self.id, "name": self.name, "status": self.status, "details": self.details,
                "foreign": self.foreign, "tags": self.tags, "node": self.node, "created_ms": ms(self.created),
                "active_ms": ms(self.active), "ended_ms": ms(self.ended), "gone_ms": ms(self.gone),
                "kill_at_ms": ms(self.kill_at), "price_udollar": self.price_udollar,
                "cost_udollar": self.cost_udollar(), "request": self.request}


class Park:
    def __init__(self, cloud, options):
        self.cloud, self.options = cloud, options
        self.all, self.offset, self.lag = {}, 0.0, options.lag
        self.nodes, self.pool_used, self.invented = [], False, 0
        if options.nodes:
            self.add_nodes(json.load(open(options.nodes)))
        threading.Thread(target=self.tick, daemon=True).start()

    def now(self):
        return time.time() + self.offset

    def now_ms(self):
        return int(self.now() * 1000)

    def tick(self):
        while True:
            time.sleep(TICK)
            with self.cloud.lock:
                self.settle()
                self.cloud.changed.notify_all()

    def add_nodes(self, nodes):
        self.nodes += [dict({"port": 22, "user": "root"}, **n) for n in nodes]
        self.pool_used = True

    # ---- life

    def add(self, machine, faults=()):
        """A machine that the cloud accepted; faults are those of the create request."""
        self.all[machine.id] = machine
        for f in faults:
            if f["kind"] == "late":
                machine.visible_at = machine.created + f["seconds"]
            elif f["kind"] == "slow-boot":
                machine.delays[self.cloud.phases[-1]] += f["seconds"]
            elif f["kind"] == "preempted":
                machine.preempt_at = machine.created + f.get("seconds", 0)
            elif f["kind"] == "late-error":
                machine.fail_at = machine.created + f.get("seconds", 0)
                machine.extra["error"] = f.get("details", "out of stock")
        if machine.foreign:
            machine.wants_node, machine.node = False, self.invent()
        elif self.options.on_create and machine.fail_at is None:
            self.run_hook(self.options.on_create, machine, self.booted)
        return machine

    def settle(self):
        now = self.now()
        for m in list(self.all.values()):
            if m.gone:
                continue
            if m.ended:
                self.settle_ending(m, now)
                continue
            if m.failed is None and m.fail_at and now >= m.fail_at:
                self.fail(m, m.extra["error"])
            self.settle_phase(m, now)
            if m.preempt_at and now >= m.preempt_at:
                self.end(m, "preempted")
            elif m.kill_at and now >= m.kill_at:
                self.end(m, "auto deleted", m.kill_at)

    def settle_phase(self, m, now):
        phases = self.cloud.phases
        if m.wants_node and m.node is None and m.failed is None:
            self.give_node(m)
        while m.failed is None and m.phase < len(phases) and now >= m.since + m.delays[phases[m.phase]]:
            last = m.phase == len(phases) - 1
            if last and m.node is None:
                m.held = True
                break
            m.since = now if m.held else m.since + m.delays[phases[m.phase]]
            m.phase += 1
            if last:
                m.active = max(m.since, m.created)
                if self.options.on_active and not m.foreign:
                    self.run_hook(self.options.on_active, m)

    def settle_ending(self, m, now):
        if now >= m.ended + m.delays[self.cloud.ending]:
            m.gone = now

    def end(self, m, details="", when=None):
        if m.ended or m.gone:
            return
        m.ended, m.details = when or self.now(), details
        if self.options.on_delete and m.node and not m.foreign:
            self.run_hook(self.options.on_delete, m, lambda *a: self.take_node_back(m))
        else:
            self.take_node_back(m)

    def fail(self, m, details):
        m.failed, m.details = details, details
        if m.active is not None and m.ended is None:
            m.extra["failed_active"] = True

    def order(self, m, what):
        """A control call upon one machine."""
        do = what["do"]
        m.extra.setdefault("configuration", {})
        if "configuration" in what:
            m.extra["configuration"].update(what["configuration"])
        if do == "preempt":
            self.end(m, "preempted")
        elif do == "vanish":
            self.end(m)
            m.gone = self.now()
        elif do == "fail":
            self.fail(m, what.get("details", "failed"))
        elif do == "end":
            self.end(m, what.get("details", ""))
        elif do == "tags":
            m.tags = list(what["tags"])
        elif do == "status":
            m.stuck, m.details = what["status"], what.get("details", m.details)
        else:
            raise ValueError("do what? %r" % do)

    # ---- addresses

    def invent(self):
        self.invented += 1
        return {"ip": "203.0.113.%d" % (self.invented % 254 + 1), "port": 22, "user": self.cloud.ssh_user}

    def give_node(self, m):
        if self.options.on_create:
            return
        if not self.pool_used:
            m.node = self.invent()
        elif self.nodes:
            m.node, m.pooled = self.nodes.pop(0), True
            self.authorise(m.node, m.hook.get("ssh_public_keys", []))

    @staticmethod
    def authorise(node, keys):
        if "authorized_keys" in node:
            with open(node["authorized_keys"], "w") as f:
                f.write("".join(k.strip() + "\n" for k in keys))

    def take_node_back(self, m):
        with self.cloud.lock:
            if m.pooled:
                self.authorise(m.node, [])
                self.nodes.append(m.node)
                m.pooled = False

    def booted(self, m, ok, out):
        with self.cloud.lock:
            try:
                m.node = dict({"port": 22, "user": self.cloud.ssh_user}, **json.loads(out)) if ok else None
            except ValueError:
                ok = False
            if not ok:
                self.fail(m, "boot failed")
            elif m.ended and self.options.on_delete:
                self.run_hook(self.options.on_delete, m)

    def run_hook(self, command, m, then=None):
        node = m.node or {}
        text = json.dumps({"user_data": None, "user_data_kind": "none", "user": self.cloud.ssh_user, **m.hook,
                           "id": m.id, "name": node.get("name", m.name), "ip": node.get("ip"), "node": m.node})

        def run():
            p = subprocess.run(["/bin/sh", "-c", command], input=text, stdout=subprocess.PIPE, text=True)
            if then:
                then(m, p.returncode == 0, p.stdout)

        threading.Thread(target=run, daemon=True).start()

    # ---- money

    def bill(self):
        ours = list(self.all.values())
        return {"total_udollar": sum(m.cost_udollar() for m in ours if not m.foreign),
                "rate_udollar": sum(m.price_udollar for m in ours if m.billing() and not m.foreign),
                "running": sum(m.billing() and not m.foreign for m in ours),
                "machines": {m.id: m.cost_udollar() for m in ours}}
