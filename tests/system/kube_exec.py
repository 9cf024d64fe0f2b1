#!/usr/bin/python3
"""kube_exec.py - credentials that a program or a file gives: gpubroker-runner --kube after client-go's rules

Against the double, or with GPUB_TEST_KUBE=real against a real kube-apiserver.
"""
import base64
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "kube")]
import cluster  # noqa: E402
import kubeapi  # noqa: E402
import runner_client  # noqa: E402
from sandbox import done, ok, same  # noqa: E402

MODE = os.environ.get("GPUB_TEST_KUBE", "double")
V1 = "client.authentication.k8s.io/v1"
CANARY = "canary-stderr-5f1c"


def stamp(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Bench:
    def __init__(self, c, folder):
        self.c, self.dir = c, pathlib.Path(folder)
        self.kube = runner_client.Runner("kube", env={"GPUB_SECRET_OF_THE_DAEMON": "x"})
        self.token = self.make_token("aaaaaa")
        self.n = 0

    def make_token(self, ident):
        secret = "0123456789abcdef"
        self.c.hosted["api"].create("/api/v1/namespaces/kube-system/secrets", {
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": "bootstrap-token-" + ident}, "stringData": {
                "token-id": ident, "token-secret": secret, "usage-bootstrap-authentication": "true",
                "expiration": stamp(3600)}})
        return f"{ident}.{secret}"

    def program(self, *answers, code=0, more="", version=V1):
        """A program that gives one answer after the other, repeats the last, and notes each run."""
        self.n += 1
        d = self.dir / f"p{self.n}"
        d.mkdir()
        for i, status in enumerate(answers):
            text = status if isinstance(status, str) else json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
            (d / f"answer{i}").write_text(text)
        path = d / "plugin"
        path.write_text(f"#!/bin/sh\nn=$(wc -l <{d}/runs 2>/dev/null || echo 0)\necho \"$#\" >>{d}/runs\n"
                        f"env >{d}/env\nprintf '%s\\n' \"$@\" >{d}/args\necho {CANARY} >&2\n{more}\n"
                        f"[ -e {d}/answer$n ] || n={len(answers) - 1}\ncat {d}/answer$n\nexit {code}\n")
        path.chmod(0o755)
        return path

    def runs(self, path):
        f = path.parent / "runs"
        return len(f.read_text().splitlines()) if f.exists() else 0

    def conf(self, user):
        conf = yaml.safe_load(self.c.hosted["text"])
        conf["users"][0]["user"] = user
        return yaml.safe_dump(conf)

    def exec(self, path, **more):
        return self.conf({"exec": {"apiVersion": V1, "command": str(path), "interactiveMode": "Never", **more}})

    def ask(self, conf, deadline_ms=10000):
        call, self.kube.next = self.kube.next, self.kube.next + 1
        self.kube.items[call] = []
        self.kube.send(runner_client.SECRET, call, b"kubeconfig\0" + conf.encode())
        self.kube.send(runner_client.CALL, call, json.dumps({"call": "health", "deadline_ms": deadline_ms, "args": {
            "cluster": {"name": "k", "type": "kubeconfig", "allow_private": True}, "nodes": ["nobody"]}}).encode())
        r = self.kube.wait(call, 60)
        text = json.dumps(r) + json.dumps(self.kube.logs)
        assert CANARY not in text and self.token not in text, "what a program said is quoted"
        return r

    def works(self, conf, name, **kw):
        r = self.ask(conf, **kw)
        ok(r["kind"] == "ok" and r["value"]["nodes"]["nobody"].get("missing"), name, r)


def answers(b):
    p = b.program({"token": b.token})
    b.works(b.exec(p), "a token from a program")
    b.works(b.exec(p), "and again")
    same(b.runs(p), 1, "without an expiry it is asked once")
    conf = b.exec(p, args=["get-token", "a b", "$(touch /nonexistent)", ""],
                  env=[{"name": "AWS_PROFILE", "value": "gpu $HOME"}, {"name": "PATH", "value": "/usr/bin:/bin"}],
                  provideClusterInfo=True)
    b.works(conf, "with arguments, variables and what cluster it is for")
    same((p.parent / "args").read_text(), "get-token\na b\n$(touch /nonexistent)\n\n", "no shell reads the arguments")
    env = dict(line.split("=", 1) for line in (p.parent / "env").read_text().splitlines() if "=" in line)
    same(env.get("AWS_PROFILE"), "gpu $HOME", "the variables are there")
    ok("GPUB_SECRET_OF_THE_DAEMON" not in env, "the daemon's own environment is not")
    info = json.loads(env["KUBERNETES_EXEC_INFO"])
    same((info["apiVersion"], info["kind"], info["spec"]["interactive"], info["spec"]["cluster"]["server"]),
         (V1, "ExecCredential", False, b.c.hosted["url"]), "KUBERNETES_EXEC_INFO says who asks for what")
    same(base64.b64decode(info["spec"]["cluster"]["certificate-authority-data"]), b.c.hosted["ca"].pem, "with the cluster's CA")
    beta = V1 + "beta1"
    p = b.program({"token": b.token}, version=beta)
    b.works(b.conf({"exec": {"apiVersion": beta, "command": str(p)}}), "v1beta1 needs no interactiveMode")
    ok("cluster" not in json.loads(dict(line.split("=", 1) for line in (p.parent / "env").read_text().splitlines()
                                        if "=" in line)["KUBERNETES_EXEC_INFO"])["spec"], "no cluster is told unasked")
    user = yaml.safe_load(b.c.hosted["text"])["users"][0]["user"]
    pem = {new: base64.b64decode(user[old]).decode() for new, old in
           (("clientCertificateData", "client-certificate-data"), ("clientKeyData", "client-key-data"))}
    b.works(b.exec(b.program(pem)), "a certificate from a program")


def expiry(b):
    p = b.program({"token": b.token, "expirationTimestamp": stamp(3600)})
    b.works(b.exec(p), "a token with an expiry")
    b.works(b.exec(p), "is used")
    same(b.runs(p), 1, "while it lasts")
    p = b.program({"token": b.token, "expirationTimestamp": stamp(5)})
    b.works(b.exec(p), "one that is nearly over")
    b.works(b.exec(p), "is not kept")
    same(b.runs(p), 2, "the program is asked again")
    p = b.program({"token": "aaaaaa.ffffffffffffffff"}, {"token": b.token})
    b.works(b.exec(p), "a token that the server refuses")
    same(b.runs(p), 2, "is replaced at once")
    b.works(b.exec(p), "and the new one is kept")
    same(b.runs(p), 2, "for the next")
    p = b.program({"token": "aaaaaa.ffffffffffffffff"})
    r = b.ask(b.exec(p))
    same((r["kind"], r["code"], b.runs(p)), ("auth", "kube-401", 2), "refused twice it is a refusal")


def together(b):
    p = b.program({"token": b.token}, more="sleep 0.5")
    calls = []
    for _ in range(8):
        call, b.kube.next = b.kube.next, b.kube.next + 1
        b.kube.items[call] = []
        b.kube.send(runner_client.SECRET, call, b"kubeconfig\0" + b.exec(p).encode())
        b.kube.send(runner_client.CALL, call, json.dumps({"call": "health", "deadline_ms": 20000, "args": {
            "cluster": {"name": "k", "type": "kubeconfig", "allow_private": True}, "nodes": ["nobody"]}}).encode())
        calls.append(call)
    same([b.kube.wait(c, 30)["kind"] for c in calls], ["ok"] * 8, "eight calls at once")
    same(b.runs(p), 1, "ask it once")


def failures(b):
    good = {"token": b.token}
    for p, more, kind, word, name in (
            (b.program(good, code=3), {}, "unavailable", "status 3", "a program that fails"),
            (b.program("no json"), {}, "invalid", "no ExecCredential", "one that prints something else"),
            (b.program(good, version=V1 + "alpha1"), {}, "invalid", "no ExecCredential", "another apiVersion than it is named with"),
            (b.program({}), {}, "invalid", "neither a token nor", "an empty status"),
            (b.program({"clientKeyData": "x"}), {}, "invalid", "without its key", "a key alone"),
            (b.program({"token": "a\nb"}), {}, "invalid", "line break", "a token of two lines"),
            (b.program({**good, "expirationTimestamp": "soon"}), {}, "invalid", "no time", "an expiry that is none"),
            (b.program("x" * 70000), {}, "invalid", "more than 65536", "one that prints without end"),
            (b.dir / "nowhere", {}, "invalid", "No such file", "a program that is not there")):
        r = b.ask(b.exec(p, **more))
        ok(r["kind"] == kind and r.get("code") == "kubeconfig-exec" and word in r["text"], f"{name}: {r.get('text')}", r)
    p = b.program(good, more=f"sleep 60 & echo $! >{b.dir}/child; sleep 60")
    began = time.monotonic()
    r = b.ask(b.exec(p), deadline_ms=1500)
    ok(r["kind"] == "unavailable" and time.monotonic() - began < 10, "one that hangs ends with the call's deadline", r)
    child = (b.dir / "child").read_text().strip()
    cluster.wait("its child ends", lambda: not os.path.exists(f"/proc/{child}") or
                 open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()[0] == "Z", 5)
    ok(True, "and takes its children with it")
    p = b.program(good, more=f"cat {b.dir}/p{b.n + 1}/answer0; exec >&- 2>&-; sleep 60")
    r = b.ask(b.exec(p), deadline_ms=1500)
    ok(r["kind"] == "unavailable", "one that prints and stays is ended, too", r)


def token_file(b):
    path = b.dir / "token"
    path.write_text("aaaaaa.ffffffffffffffff\n")
    conf = b.conf({"tokenFile": str(path)})
    same(b.ask(conf)["kind"], "auth", "a token file with the wrong token")
    path.write_text(b.token + "\n")
    b.works(conf, "is read again")
    b.works(b.conf({"tokenFile": str(path), "token": "aaaaaa.ffffffffffffffff"}), "and counts more than a token beside it")
    b.works(b.conf({"tokenFile": str(b.dir / "gone"), "token": b.token}), "unless it cannot be read")


def foreign(b):
    secret = f"/api/v1/namespaces/{cluster.NAMESPACE}/secrets/{cluster.NAME}-kubeconfig"
    path = b.dir / "token"
    b.c.management["api"].merge(secret, {"data": {"value": kubeapi.b64(b.conf({"tokenFile": str(path)}))}})
    plane = {"name": "spoke-a", "type": "k0smotron", "namespace": cluster.NAMESPACE, "control_plane": cluster.NAME,
             "allow_private": True}
    call, b.kube.next = b.kube.next, b.kube.next + 1
    b.kube.items[call] = []
    b.kube.send(runner_client.SECRET, call, b"kubeconfig\0" + b.c.management["text"].encode())
    b.kube.send(runner_client.CALL, call, json.dumps({"call": "lint", "deadline_ms": 10000, "args": {"cluster": plane}}).encode())
    r = b.kube.wait(call, 30)
    ok("kubeconfig-foreign" in [f["code"] for f in r["value"]["findings"]],
       "a kubeconfig that a cluster hands out may name no file of ours", r)


def main():
    with tempfile.TemporaryDirectory() as d, cluster.Clusters(MODE, d, "127.0.0.1") as c:
        b = Bench(c, d)
        for test in (answers, expiry, together, failures, token_file, foreign):
            test(b)
        same(b.kube.close(), 0, "the runner ends")
    done()


main()
