#!/usr/bin/python3
"""provider_http.py - the host's http service against a local cloud: what is sent, how often, and what its loss means"""
import email.utils
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from provider_harness import DROP, HttpServer, Provider, Skip, tap

KEY = b"canary-key-0123456789"
OK = (200, {}, {"ok": True})


def web(cloud, **http):
    return Provider("web", options={"endpoint": cloud.url}, secrets={"api_key": KEY}, http=http)


def answer(p):
    """What the plugin saw of the last answer."""
    text = [l["text"] for l in p.logs if l["event"] == "web.answer"][-1]
    return dict(word.split("=", 1) for word in text.split())


def posts(cloud):
    return [r for r in cloud.requests if r.method == "POST"]


def test_lost_reply():
    """a POST whose reply is lost is UNKNOWN and was sent once"""
    with HttpServer(lambda r: DROP) as cloud, web(cloud) as p:
        r = p.create("/lost")
        assert r.kind == "unknown", r
        assert answer(p)["sent"] == "1" and answer(p)["status"] == "0", answer(p)
        assert len(cloud.requests) == 1, len(cloud.requests)


def test_refused_connection():
    """a POST that met no listener is UNAVAILABLE: nothing was sent"""
    with HttpServer(lambda r: OK) as cloud:
        url = cloud.url
    with Provider("web", options={"endpoint": url}) as p:
        r = p.create("/x")
        assert r.kind == "unavailable" and answer(p)["sent"] == "0", (r, answer(p))


def test_gateway_error():
    """502 to a POST is UNKNOWN, for the cloud behind the gateway may have acted; it is not sent again"""
    with HttpServer(lambda r: (502, {}, "bad gateway")) as cloud, web(cloud) as p:
        r = p.create("/x")
        assert r.kind == "unknown" and r.http_status == 502, r
        assert answer(p)["sent"] == "2" and len(cloud.requests) == 1


def test_client_error():
    """4xx is an answer: the plugin's own kind stands"""
    with HttpServer(lambda r: (409, {}, "no")) as cloud, web(cloud) as p:
        assert p.create("/x").kind == "invalid"


def test_garbled_success():
    """a create that was accepted, with a reply that the plugin cannot read, is UNKNOWN"""
    with HttpServer(lambda r: OK) as cloud, web(cloud) as p:
        assert p.create("/garbled").kind == "unknown"


def test_safe_retry():
    """502, 503 and a dropped connection to a GET are tried again"""
    replies = [(502, {}, "x"), (503, {}, "x"), DROP, OK]
    with HttpServer(lambda r: replies.pop(0)) as cloud, web(cloud) as p:
        r = p.call("list_offers", {"offer_ref": "/x"})
        assert r.kind == "ok" and not replies, r
        waits = [l for l in p.logs if l["event"] == "http.retry"]
        assert len(waits) == 2, "libcurl itself goes on from a stale connection"


def test_safe_retry_ends():
    """a GET is tried four times, then its answer stands"""
    with HttpServer(lambda r: (503, {}, "x")) as cloud, web(cloud) as p:
        r = p.call("list_offers", {"offer_ref": "/x"})
        assert r.kind == "unavailable" and r.http_status == 503 and len(cloud.requests) == 4, r


def test_no_retry_of_others():
    """500 and 429 to a GET are answers"""
    for status, kind in (500, "unavailable"), (429, "rate-limited"):
        with HttpServer(lambda r: (status, {}, "x")) as cloud, web(cloud) as p:
            assert p.call("list_offers", {"offer_ref": "/x"}).kind == kind
            assert len(cloud.requests) == 1


def test_retry_after():
    """Retry-After reaches the plugin, in seconds or as a date; a longer one than the deadline is not waited for"""
    value = ["7"]
    with HttpServer(lambda r: (429, {"Retry-After": value[0]}, "x")) as cloud:
        with web(cloud) as p:
            assert p.call("list_offers", {"offer_ref": "/x"}).retry_after_ms == 7000
            r = p.call("list_offers", {"offer_ref": "/x"}, deadline_ms=3000)
            assert r.kind == "rate-limited" and len(cloud.requests) == 1, "the next request waits for the cloud"
        value[0] = email.utils.formatdate(time.time() + 60, usegmt=True)
        with web(cloud) as p:
            assert 55000 < p.call("list_offers", {"offer_ref": "/x"}).retry_after_ms <= 60000


def test_stale_connection():
    """a POST never goes onto a used connection, so libcurl cannot repeat it there"""
    served = set()

    def handler(r):
        if r.connection in served:
            return DROP
        served.add(r.connection)
        return OK

    with HttpServer(handler) as cloud, web(cloud) as p:
        assert p.call("list_offers", {"offer_ref": "/a"}).kind == "ok"
        assert p.create("/x").kind == "ok"
        assert p.create("/y", token="t2").kind == "ok"
        assert p.call("list_offers", {"offer_ref": "/b"}).kind == "ok", "a GET survives a stale connection"
        assert len(posts(cloud)) == 2 and len({r.connection for r in posts(cloud)}) == 2


def test_reuse():
    """reads share connections: at most one for each of the four workers"""
    with HttpServer(lambda r: OK) as cloud, web(cloud) as p:
        for _ in range(12):
            assert p.call("probe").kind == "ok"
        assert len({r.connection for r in cloud.requests}) <= 4


def test_no_redirect():
    """a redirect is an answer"""
    with HttpServer(lambda r: (302, {"Location": "/elsewhere"}, "")) as cloud, web(cloud) as p:
        p.call("list_offers", {"offer_ref": "/x"})
        assert answer(p)["status"] == "302" and len(cloud.requests) == 1


def stopped(call, args, how):
    """Starts a call, waits until the cloud has its request, ends it; returns result and seconds."""
    arrived, let_go = threading.Event(), threading.Event()

    def handler(r):
        arrived.set()
        let_go.wait(20)
        return OK

    with HttpServer(handler) as cloud, web(cloud) as p:
        try:
            number = p.start(call, args, deadline_ms=30000 if how == "cancel" else 700)
            assert arrived.wait(10)
            began = time.monotonic()
            if how == "cancel":
                p.cancel(number)
            return p.wait(number), time.monotonic() - began
        finally:
            let_go.set()


CREATE = {"offer_ref": "/x", "max_price_udollar": 1, "token": "t", "name": "n"}


def test_cancel():
    """cancel ends a waiting GET (cancelled) and POST (unknown) within a second"""
    for call, args, kind in ("list_offers", {"offer_ref": "/x"}, "cancelled"), ("create", CREATE, "unknown"):
        r, seconds = stopped(call, args, "cancel")
        assert r.kind == kind and seconds < 1, (r, seconds)


def test_deadline():
    """so does the deadline"""
    for call, args, kind in ("list_offers", {"offer_ref": "/x"}, "cancelled"), ("create", CREATE, "unknown"):
        r, seconds = stopped(call, args, "deadline")
        assert r.kind == kind and seconds < 2, (r, seconds)


def test_request_timeout():
    """a request's own timeout is UNAVAILABLE for a GET, while the call goes on"""
    let_go = threading.Event()
    with HttpServer(lambda r: let_go.wait(20) and OK) as cloud, web(cloud) as p:
        r = p.call("list_offers", {"offer_ref": "/short"})
        let_go.set()
        assert r.kind == "unavailable" and "in time" in r.text, r


def test_body_cap():
    """an answer beyond max_body fails; of a POST that is UNKNOWN"""
    with HttpServer(lambda r: (200, {}, b"x" * 5000)) as cloud, web(cloud) as p:
        r = p.call("list_offers", {"offer_ref": "/small"})
        assert r.kind == "unavailable" and "cap" in r.text and len(cloud.requests) == 1, r
        assert p.create("/small").kind == "unknown"


def test_truncated():
    """an answer that ends early: GET is tried again, POST is UNKNOWN"""
    def handler(r):
        if r.path == "/once" and len(cloud.requests) > 1:
            return OK
        return "raw", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"

    with HttpServer(handler) as cloud, web(cloud) as p:
        assert p.call("list_offers", {"offer_ref": "/once"}).kind == "ok"
        r = p.create("/cut")
        assert r.kind == "unknown" and answer(p)["sent"] == "1" and len(posts(cloud)) == 1, r


def test_not_http():
    """an answer that is no HTTP is an error, not a crash"""
    with HttpServer(lambda r: ("raw", b"\x00\xff" * 500)) as cloud, web(cloud) as p:
        assert p.call("list_offers", {"offer_ref": "/short"}).kind == "unavailable"
        assert p.create("/x").kind == "unknown"


def test_streaming():
    """on_body gets all bytes; a transient error is not streamed while tries are left"""
    replies = [(503, {}, b"e" * 10), (200, {}, b"x" * 300000)]
    with HttpServer(lambda r: replies.pop(0)) as cloud, web(cloud) as p:
        assert p.call("list_offers", {"offer_ref": "/stream"}).kind == "ok"
        assert answer(p)["streamed"] == "300000" and answer(p)["body_len"] == "0", answer(p)


def test_headers():
    """names come in lower case, of the final block; trailers apart"""
    raw = (b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-Late:  2 \r\nTransfer-Encoding: chunked\r\n"
           b"Trailer: T\r\n\r\n3\r\nabc\r\n0\r\nGRPC-Status: 5\r\n\r\n")
    with HttpServer(lambda r: ("raw", raw)) as cloud, web(cloud) as p:
        assert p.call("list_offers", {"offer_ref": "/x"}).kind == "ok"
        a = answer(p)
        assert a["x-late"] == "2" and a["trailer:grpc-status"] == "5" and "x-early" not in a and a["body_len"] == "3", a


def test_request_shape():
    """no Expect, no form type; an empty header is sent; the secret is in the request and nowhere else"""
    with HttpServer(lambda r: OK) as cloud, web(cloud) as p:
        p.create("/x")
        h = cloud.requests[0].headers
        assert h["authorization"] == "Bearer " + KEY.decode() and h["x-empty"] == "", dict(h)
        assert "expect" not in h and "content-type" not in h, dict(h)
        assert cloud.requests[0].body == b'{"a":1}'
        assert KEY.decode() not in json.dumps(p.logs)


def test_plain_http():
    """http:// goes only below a configured address"""
    with HttpServer(lambda r: OK) as cloud:
        with Provider("web") as p:
            r = p.call("list_offers", {"offer_ref": cloud.url + "/x"})
            assert r.kind == "invalid" and "only https" in r.text, r
        with Provider("web", options={"endpoint": cloud.url[:-1]}) as p:
            r = p.call("list_offers", {"offer_ref": cloud.url + "/x"})
            assert r.kind == "invalid", "http://127.0.0.1:123 does not allow http://127.0.0.1:1234"
        with Provider("web", options={"endpoint": cloud.url}) as p:
            for bad in "ftp://127.0.0.1/", "https://user@127.0.0.1/", "file:///etc/passwd", "https:///", "x y":
                assert p.call("list_offers", {"offer_ref": "" + bad}).kind == "invalid" or "://" not in bad, bad
        assert not cloud.requests


def test_rate():
    """the token bucket spaces requests out, and says RATE_LIMITED when the wait is too long"""
    with HttpServer(lambda r: OK) as cloud, web(cloud, rate=5.0, burst=2) as p:
        began = time.monotonic()
        for _ in range(4):
            assert p.call("probe").kind == "ok"
        assert time.monotonic() - began >= 0.35, "two of four had to wait 200 ms each"
    with HttpServer(lambda r: OK) as cloud, web(cloud, rate=0.01, burst=1) as p:
        assert p.call("probe").kind == "ok"
        r = p.call("probe", deadline_ms=2000)
        assert r.kind == "rate-limited" and r.retry_after_ms > 50000, r


def test_environment_is_ignored():
    """http_proxy of the daemon's environment does not reach the host"""
    os.environ["http_proxy"] = "http://127.0.0.1:9"
    try:
        with HttpServer(lambda r: OK) as cloud, web(cloud) as p:
            assert p.call("probe").kind == "ok"
    finally:
        del os.environ["http_proxy"]


def test_proxy():
    """the configured proxy is used"""
    with HttpServer(lambda r: OK) as proxy:
        with Provider("web", options={"endpoint": "http://cloud.test"}, http={"proxy": proxy.url}) as p:
            assert p.call("probe").kind == "ok"
            assert proxy.requests[0].path == "http://cloud.test/probe"
        with Provider("web", http={"proxy": proxy.url}) as p:
            r = p.create("/x")  # https through CONNECT, which this proxy refuses
            assert r.kind == "unavailable" and answer(p)["sent"] == "0", (r, answer(p))


def certificate(folder):
    if not shutil.which("openssl"):
        raise Skip("openssl(1) is not installed")
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key,
                    "-out", cert], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cert, key


def test_tls():
    """certificates are checked against ca_file; a POST that fails there was not sent"""
    with tempfile.TemporaryDirectory() as folder, HttpServer(lambda r: OK) as cloud:
        cert, key = certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        cloud._server.socket = context.wrap_socket(cloud._server.socket, server_side=True)
        url = "https://localhost:%d" % cloud.port
        with Provider("web", options={"endpoint": url}, http={"ca_file": cert}) as p:
            assert p.call("probe").kind == "ok"
        with Provider("web", options={"endpoint": url}) as p:
            r = p.create("/x")
            assert r.kind == "unavailable" and answer(p)["sent"] == "0", (r, answer(p))
        assert len(cloud.requests) == 1


def test_record_replay():
    """what was recorded is played back, byte for byte, without a cloud; secrets are not in it"""
    def handler(r):
        if r.path.startswith("/bin"):
            return 200, {"X-Kind": "bytes"}, bytes(range(256))
        return 200, {"X-Key": r.headers["authorization"][7:]}, {"echo": r.headers["authorization"], "path": r.path}

    with tempfile.TemporaryDirectory() as folder:
        with HttpServer(handler) as cloud, web(cloud, record=folder) as p:
            p.call("list_offers", {"offer_ref": "/bin?a=1"})
            p.create("/machines")
            p.create("/machines", token="t2")
            first = answer(p)
        names = sorted(os.listdir(folder))
        assert names == ["0001-GET-bin.json", "0002-POST-machines.json", "0003-POST-machines.json"], names
        text = "".join(open(os.path.join(folder, n)).read() for n in names)
        assert KEY.decode() not in text and json.loads(open(os.path.join(folder, names[1])).read())["request"]["body_sha256"]
        with web(cloud, replay=folder) as p:
            assert p.create("/machines").kind == "ok" and answer(p)["body_len"] == first["body_len"]
            r = p.call("list_offers", {"offer_ref": "/bin?a=1"})
            assert r.kind == "ok" and answer(p)["body_len"] == "256" and answer(p)["x-kind"] == "bytes", answer(p)
            r = p.call("list_offers", {"offer_ref": "/bin?a=1"})
            assert r.kind == "unavailable" and "no recording is left for /bin?a=1" in r.text, r
            assert p.create("/other").kind == "unavailable", "nothing was sent"


def test_hang_up():
    """when the daemon closes, a sent POST is brought to its end and a waiting GET is not"""
    arrived, let_go = threading.Semaphore(0), threading.Event()

    def handler(r):
        arrived.release()
        let_go.wait(20)
        return OK

    with HttpServer(handler) as cloud, web(cloud) as p:
        post, get = p.start("create", CREATE), p.start("list_offers", {"offer_ref": "/x"})
        assert arrived.acquire(timeout=10) and arrived.acquire(timeout=10)
        p.on_item = lambda call, body: False
        p.hang_up()
        assert p.wait(get).kind == "cancelled"
        assert post not in p.done
        let_go.set()
        r = p.wait(post)
        assert r.kind == "ok" and r.machines[0]["id"] == "web-1", "the answer was read and told"
        assert p.wait_exit() == 0


if __name__ == "__main__":
    tap(globals())
